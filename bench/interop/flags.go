package main

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"time"
)

// flags are the command line.
type flags struct {
	only       *regexp.Regexp
	short      bool
	list       bool
	json       bool
	keep       string
	updateDocs bool
	exec       string
	xroce      string
	limit      time.Duration
}

func parseFlags(args []string) (flags, error) {
	var f flags
	var only string
	fs := flag.NewFlagSet("interop", flag.ContinueOnError)
	fs.StringVar(&only, "only", "", "run the cases whose name `regexp` matches")
	fs.BoolVar(&f.short, "short", false, "choose from the part that continuous integration runs")
	fs.BoolVar(&f.list, "list", false, "list the cases and stop")
	fs.BoolVar(&f.json, "json", false, "print the outcomes as JSON, progress on stderr")
	fs.StringVar(&f.keep, "keep", "", "keep the capture, and the output of failed cases, in `dir`")
	fs.BoolVar(&f.updateDocs, "update-docs", false, "write the tables of docs/interop.md anew")
	fs.StringVar(&f.exec, "exec", "", "run a shell `command` in the VM instead of the cases")
	fs.StringVar(&f.xroce, "xroce", "", "run this `program` (default: that of this source)")
	fs.DurationVar(&f.limit, "limit", 20*time.Minute, "give up after this `time`")
	if err := fs.Parse(args); err != nil {
		return flags{}, err
	}
	if fs.NArg() > 0 {
		return flags{}, fmt.Errorf("unexpected arguments %q", fs.Args())
	}
	if f.updateDocs && (only != "" || f.short) {
		return flags{}, errors.New(
			"--update-docs writes what came of all cases, without --only and --short")
	}
	var err error
	f.only, err = regexp.Compile(only)
	return f, err
}
