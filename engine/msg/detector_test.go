//go:build !race

package msg_test

const raceDetector = false
