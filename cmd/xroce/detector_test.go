//go:build !race

package main

// raceDetector says that tests run under the race detector.
const raceDetector = false
