package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"

	"xroce/bench/load"
	"xroce/bench/worker"
)

// workerCommand is the hidden first argument that makes this program a measured
// process instead of the harness.
const workerCommand = "worker"

// workers are what can be measured inside this program, by the name that follows
// workerCommand.
var workers = map[string]func(worker.Options, io.Reader, io.Writer) (worker.Report, error){
	"ours":   load.Ours,
	"asavie": load.Asavie,
	"sink":   load.Sink,
	"pass":   load.Pass,
	"rc":     load.RC,
	"micro":  load.Micro,
	"keys":   load.Keys,

	"messages": load.Messages,
	"tcp":      load.TCP,
	"udp":      load.UDP,
	"tunnel":   load.Tunnel,
}

// runWorker is the main function of a measured process.
func runWorker(args []string) int {
	if len(args) < 1 || workers[args[0]] == nil {
		fmt.Fprintf(os.Stderr, "bench: no worker %q\n", args)
		return exitUsage
	}
	// taskset left us one CPU, and so Go one P. A measured loop that sleeps
	// holds its own (xsk.Config.Dedicated), so the runtime gets a second.
	runtime.GOMAXPROCS(2)
	o, err := worker.Parse(args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitUsage
	}
	stop, err := startProfile(o.Profile)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	report, err := workers[args[0]](o, os.Stdin, os.Stdout)
	err = errors.Join(err, stop())
	if err == nil {
		_, err = report.WriteTo(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return exitOK
}

// startProfile begins a profile of this process, if a file is named, which stop ends.
func startProfile(name string) (stop func() error, err error) {
	if name == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
