package main

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// version is stamped by the linker: -X main.version=...
var version = "unknown"

func main() { os.Exit(execute(newApp(os.Stdout, os.Stderr), os.Args[1:])) }

// execute runs a command line, which Ctrl-C and SIGTERM end, and returns the exit code.
func execute(a *app, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	// A second Ctrl-C ends a program that is stuck in cleaning up.
	context.AfterFunc(ctx, stop)
	return a.run(ctx, args)
}
