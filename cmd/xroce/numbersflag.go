package main

import (
	"fmt"
	"strconv"
	"strings"
)

// A numbersFlag is a list of numbers as code has them: EtherTypes and QPs are known in hexadecimal,
// which the list of pflag refuses. The first time that it is given it replaces the default.
type numbersFlag struct {
	list  *[]uint
	given bool
}

// numbers makes a flag of a list, whose default is given.
func numbers(list *[]uint, def ...uint) *numbersFlag {
	*list = def
	return &numbersFlag{list: list}
}

// String is the list for the help, "" for none.
func (f *numbersFlag) String() string {
	if f.list == nil || len(*f.list) == 0 {
		return ""
	}
	return fmt.Sprint(*f.list)
}

// Type is what the help calls the value.
func (*numbersFlag) Type() string { return "numbers" }

// Set parses numbers with commas between them, and adds them to those that were given before.
func (f *numbersFlag) Set(text string) error {
	var list []uint
	if f.given {
		list = *f.list
	}
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(word), 0, 32)
		if err != nil {
			return fmt.Errorf("%q is no number of 32 bits", word)
		}
		list = append(list, uint(n))
	}
	*f.list, f.given = list, true
	return nil
}
