package conformance

// CheckOnce is Check, and runs no case again.
func CheckOnce(newClient func(baseURL string) Client, only ...string) *Scorecard {
	return check(newClient, 1, only)
}
