package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// version is stamped by the linker: -X main.version=...
var version = "unknown"

func main() { os.Exit(execute(context.Background(), newApp(os.Stdout, os.Stderr), os.Args[1:])) }

// execute runs a command line, which Ctrl-C and SIGTERM end, and returns the exit code.
func execute(ctx context.Context, a *app, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
	defer stop()
	// A second Ctrl-C ends a program that is stuck in cleaning up. It is no second one that comes
	// with the first: timeout(1) sends SIGTERM to its child and to the group of that.
	context.AfterFunc(ctx, func() { time.AfterFunc(oneSignal, stop) })
	return a.run(ctx, args)
}

// oneSignal is how long behind a signal others are the same.
const oneSignal = 500 * time.Millisecond
