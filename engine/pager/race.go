//go:build race

package pager

// raceDetector says that the race detector is on. It makes atomic operations in C, where
// a fault is no panic but the end of the process. A look at the page before each leaves
// only memory that is taken away between the two.
const raceDetector = true
