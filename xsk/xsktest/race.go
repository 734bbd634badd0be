//go:build race

package xsktest

// RaceDetector says that the race detector watches, which takes ten times as long and
// more. A test of one goroutine then repeats less what it repeats for statistics, or for
// one more seed: it is run in full without.
const RaceDetector = true
