//go:build !race

package pager

// raceDetector says that the race detector is on.
const raceDetector = false
