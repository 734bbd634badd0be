package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"golang.org/x/sys/unix"

	"xroce/engine"
)

// This file is about how a command ends that does not end by itself: it waits for
// somebody, and is interrupted, or loses its device.

// watch ends the command when a device fails under it: what a server waits for is most
// often no completion, and knows of no device.
func (a *app) watch(d *engine.Device) {
	a.devices = append(a.devices, d)
	go func() {
		<-d.Done()
		if err := d.Err(); !errors.Is(err, engine.ErrClosed) {
			a.end(err)
		}
	}()
}

// blame returns why a command failed: when it lost its device, that, whatever became of
// it in consequence.
func (a *app) blame(err error) error {
	if err == nil {
		return nil
	}
	for _, d := range a.devices {
		if cause := d.Err(); cause != nil && !errors.Is(cause, engine.ErrClosed) {
			return cause
		}
	}
	return err
}

// orRemoved returns why a queue is of no more use, or that its interface was removed: who has no
// device is told as who has one.
func orRemoved(iface string, err error) error {
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("interface %s was removed: %w", iface, err)
	}
	return err
}

// tellWaiting tells that a server is ready for a client, and where.
func (a *app) tellWaiting(at net.Addr) {
	a.tellReady(at, fmt.Sprintf(", waiting for a client at %s, Ctrl-C to end", at))
}

// tellReady tells that a server is ready, in words that follow "ready". Until a client is
// met, or for ever when that of one is not the end, to be interrupted is how it ends.
func (a *app) tellReady(at net.Addr, words string) {
	a.waiting.Store(true)
	if a.ready != nil {
		a.ready()
	}
	if a.logFormat == "json" {
		slog.New(slog.NewJSONHandler(a.stderr, nil)).Info("ready", "address", at.String())
		return
	}
	fmt.Fprintf(a.stderr, "xroce: ready%s\n", words)
}

// met ends what tellWaiting began: from now on, to be interrupted is to fail.
func (a *app) met() { a.waiting.Store(false) }

// exitCode maps what came of a command to an exit code.
func (a *app) exitCode(ctx context.Context, err error) int {
	code := exitCode(ctx, err, a.ran)
	if code == exitInterrupted && a.waiting.Load() {
		return exitOK
	}
	return code
}
