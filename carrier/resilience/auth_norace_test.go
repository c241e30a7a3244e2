//go:build !race

package resilience_test

const raceOn = false
