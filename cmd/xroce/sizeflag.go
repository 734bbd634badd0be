package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A sizeFlag is a number of bytes on the command line, with a binary unit or without,
// as 20G. It is 0 when it was not given.
type sizeFlag int64

// sizeUnits are the units, each 1024 of the one before.
const sizeUnits = "KMGTP"

// String is the number for the help.
func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*f), 10)
}

// Type is what the help calls the value.
func (*sizeFlag) Type() string { return "size" }

// Set parses a number of bytes that is at least 1.
func (f *sizeFlag) Set(text string) error {
	digits, shift := text, 0
	if text != "" {
		if unit := strings.IndexByte(sizeUnits, text[len(text)-1]); unit >= 0 {
			digits, shift = text[:len(text)-1], 10*(unit+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%q is no size: give bytes, or a unit, as 20G (one of %s)", text,
			sizeUnits)
	}
	*f = sizeFlag(n << shift)
	return nil
}
