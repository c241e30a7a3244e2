//go:build !race

package mockcarrier_test

const raceDetector = false
