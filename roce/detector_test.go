//go:build !race

package roce_test

// raceDetector tells whether the race detector watches.
const raceDetector = false
