package main

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// version is stamped by the linker: -X main.version=...
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	// A second Ctrl-C ends a program that is stuck in cleaning up.
	context.AfterFunc(ctx, stop)
	code := newApp(os.Stdout, os.Stderr).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
