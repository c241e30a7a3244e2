//go:build race

package carrier_test

const raceEnabled = true
