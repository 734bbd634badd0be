package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestNumbersFlag: lists of numbers are written as code has them; the first replaces the default,
// and others are added to it.
func TestNumbersFlag(t *testing.T) {
	for line, want := range map[string][]uint{
		"":                    {0x88b6},
		"--n 0x8915":          {0x8915},
		"--n 0x11,18 --n 0xf": {0x11, 18, 15},
		"--n x":               nil,
		"--n 1,,2":            nil,
		"--n -1":              nil,
		"--n 0x100000000":     nil,
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		var list []uint
		flags.Var(numbers(&list, 0x88b6), "n", "")
		err := flags.Parse(strings.Fields(line))
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(list, want) {
			t.Errorf("%q: %#x, %v, want %#x", line, list, err, want)
		}
	}
}

// TestHexadecimalLists: the numbers that the help of sink and fuzz shows are taken.
func TestHexadecimalLists(t *testing.T) {
	b, _ := simBench(t)
	for _, line := range []string{
		"sink -d none --ethertype 0x8915,0x88b6 --port 0x9",
		"fuzz -d none --dest-qp 0x11,0x12 192.0.2.2",
	} {
		if i := b.run(t, strings.Fields(line)...); i.code != exitFailure {
			t.Errorf("%s: code %d, %s", line, i.code, i.stderr)
		}
	}
}
