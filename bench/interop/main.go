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
func run(ctx context.Context, f flags) (int, error) {
	var chosen []cases.Case
	all := cases.Plan()
	if f.short {
		all = cases.Short()
	}
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
	if f.exec != "" {
		return execute(ctx, chosen[0], f)
	}
	return runCases(ctx, chosen, f)
}

// execute runs a command in a VM of the lab of a case: that of xroce, if it is in one.
func execute(ctx context.Context, c cases.Case, f flags) (status int, err error) {
	l, err := lab.Open(ctx, lab.ConfigOf(c, f.xroce))
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	vms := l.VMs()
	out, status, err := vms[len(vms)-1].Run(ctx, f.exec)
	fmt.Print(out)
	return status, err
}
