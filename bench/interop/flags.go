package main

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"time"

	"xroce/xsk/xsktest/timeout"
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
	reboots    int
}

// Of a run without --limit: what it takes to boot the VMs, to build the image when it is
// not there, and twice what the mean case takes, on a machine at rest.
const (
	limitOfAll  = 10 * time.Minute
	limitOfCase = 2 * time.Second
)

// limitOf is how long a run of some cases may take here and now.
func (f flags) limitOf(n int) time.Duration {
	if f.limit > 0 {
		return f.limit
	}
	return timeout.Scaled(limitOfAll + time.Duration(n)*limitOfCase)
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
	fs.DurationVar(&f.limit, "limit", 0,
		"give up after this `time` (default: by the number of cases)")
	fs.IntVar(&f.reboots, "reboots", 0,
		"go on, this `often`, with a VM booted anew when the kernel in it has panicked")
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
