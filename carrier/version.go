package carrier

// Version is the SDK's version, as it stands in the User-Agent.
const Version = "0.1.0"

const defaultUserAgent = "carrier-go/" + Version
