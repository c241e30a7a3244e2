// Package supply has no code, only tests: of what this repository takes in and
// gives out. They read the source, the workflows and the descriptions, and each
// check is proved on bad input in testdata.
//
// Its module pins the tools for the same end: actionlint, cyclonedx-gomod and
// govulncheck.
package supply
