//go:build !race

package roce_test

// raceDetector reports whether the race detector watches.
const raceDetector = false
