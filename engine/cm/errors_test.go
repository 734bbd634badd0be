package cm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// TestDialErrors: an error of Dial says whom it was for, and wraps what callers of package net
// test for, besides what this package says.
func TestDialErrors(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	silent, deaf := newWorld(t, hasty, engine.Options{})
	nobody := netip.AddrPortFrom(b.v4, 99)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	past, cancelPast := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancelPast()
	for _, tt := range []struct {
		name    string
		do      func() error
		text    string // the error begins so
		is      []error
		timeout bool
	}{
		{"nobody listens", func() error {
			_, err := a.manager.Dial(within(t, testTimeout), nobody, a.setup())
			return err
		}, "dial rdma 192.0.2.2:99: cm: rejected: ", []error{syscall.ECONNREFUSED}, false},
		{"no such service", func() error {
			_, err := a.manager.DialService(within(t, testTimeout), b.v6, 1<<60, a.setup())
			return err
		}, "dial rdma 2001:db8::2 service 0x1000000000000000: cm: rejected: ", []error{
			syscall.ECONNREFUSED,
		}, false},
		{"no such datagrams", func() error {
			_, err := a.manager.Lookup(within(t, testTimeout), a.pd, nobody, nil)
			return err
		}, "lookup rdma 192.0.2.2:99: cm: rejected: ", []error{syscall.ECONNREFUSED}, false},
		{"cancelled", func() error {
			_, err := a.manager.Dial(gone, nobody, a.setup())
			return err
		}, "dial rdma 192.0.2.2:99: ", []error{context.Canceled}, false},
		{"too late", func() error {
			_, err := a.manager.Dial(past, nobody, a.setup())
			return err
		}, "dial rdma 192.0.2.2:99: ", []error{context.DeadlineExceeded}, true},
		{"an address of nobody", func() error {
			to := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.77"), 1)
			_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
			return err
		}, "dial rdma 192.0.2.77:1: ", []error{engine.ErrNoNeighbour}, false},
		{"no address", func() error {
			_, err := a.manager.Dial(within(t, testTimeout), netip.AddrPort{}, a.setup())
			return err
		}, "dial rdma ", []error{roce.ErrInvalid}, false},
		{"no answer", func() error {
			must(t, silent.SetFaults(sim.Faults{Blocked: true}))
			_, err := deaf[0].manager.Dial(within(t, testTimeout), nobody, deaf[0].setup())
			return err
		}, "dial rdma 192.0.2.2:99: cm: no answer", []error{
			cm.ErrTimeout, os.ErrDeadlineExceeded,
		}, true},
		{"two listeners", func() error {
			l, err := a.manager.Listen(nobody)
			must(t, err)
			defer l.Close()
			_, err = a.manager.Listen(nobody)
			return err
		}, "listen rdma 192.0.2.2:99: cm: ", []error{rcm.ErrInUse, syscall.EADDRINUSE}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			var op *net.OpError
			if !errors.As(err, &op) || !strings.HasPrefix(fmt.Sprint(err), tt.text) ||
				op.Timeout() != tt.timeout {
				t.Errorf("%v, want %q", err, tt.text)
			}
			for _, is := range tt.is {
				if !errors.Is(err, is) {
					t.Errorf("%v is not %v", err, is)
				}
			}
		})
	}
}

// TestClosedErrors: what was closed says so in the words of package net.
func TestClosedErrors(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	l, err := b.manager.Listen(to)
	must(t, err)
	c, d := pair(t, l, a, a.setup(), b.setup())
	must(t, c.Close())
	over(t, d.Done())
	must(t, l.Close())
	_, accepting := l.Accept(within(t, testTimeout))
	must(t, a.manager.Close())
	_, dialling := a.manager.Dial(within(t, testTimeout), to, a.setup())
	_, listening := a.manager.Listen(to)
	_, looking := a.manager.Lookup(within(t, testTimeout), a.pd, to, nil)
	for what, err := range map[string]error{
		"Conn.Err": c.Err(), "Accept": accepting, "Dial": dialling, "Listen": listening,
		"Lookup": looking, "the device": engine.ErrClosed,
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if !errors.Is(d.Err(), cm.ErrHungUp) || errors.Is(d.Err(), net.ErrClosed) {
		t.Errorf("the other end: %v", d.Err())
	}
	if _, err := cm.Open(b.dev, cm.Options{}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a second manager: %v", err)
	}
}
