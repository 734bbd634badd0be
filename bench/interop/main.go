package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
)

// Exit statuses.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnsupported = 3 // this machine or this user cannot do it
)

func main() {
	f, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exitOK)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(exitUsage)
	}
	// Whoever reads the output may leave before the end, which has to be orderly.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status, err := run(ctx, f)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
	}
	os.Exit(status)
}

// run does what the flags ask for and returns the exit status.
func run(ctx context.Context, f flags) (status int, err error) {
	all := cases.Plan()
	if f.short {
		all = cases.Short()
	}
	var chosen []cases.Case
	for _, c := range all {
		if f.only.MatchString(c.Name()) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return exitUsage, errors.New("no case has such a name; --list names them")
	}
	if f.list {
		for _, c := range chosen {
			fmt.Println(c.Name())
		}
		return exitOK, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.limitOf(len(chosen)))
	defer cancel()
	if err := lab.Prepare(ctx); err != nil {
		if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EPERM) {
			return exitUnsupported, err
		}
		return exitFailed, err
	}
	l, err := lab.Open(ctx, f.xroce)
	if err != nil {
		return exitFailed, err
	}
	defer func() {
		if closeErr := l.Close(); closeErr != nil {
			status, err = exitFailed, errors.Join(err, closeErr)
		}
	}()
	if f.exec != "" {
		out, code, err := l.VM.Run(ctx, f.exec)
		fmt.Print(out)
		return code, err
	}
	return runCases(ctx, l, chosen, f)
}
