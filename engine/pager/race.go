//go:build race

package pager

// raceDetector says that the race detector is on. It makes atomic operations in C, where
// a fault is no panic but the end of the process.
const raceDetector = true
