//go:build race

package xsk_test

const raceEnabled = true
