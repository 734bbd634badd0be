package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// TestServersAmongStrangers: who connects to a server of one client and says nothing, or something
// else, keeps no client from it.
func TestServersAmongStrangers(t *testing.T) {
	for _, args := range [][]string{
		{"pingpong", "-n", "5"}, {"perf", "send-bw", "-n", "5", "-u", "20"},
	} {
		b, _ := simBench(t)
		server := b.start(t, append(args, "-d", "xr1", "-p", "0")...)
		port := server.listenPort(t)
		for i := range 3 * maxUnheard {
			conn, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			switch i % 4 {
			case 0: // an open port is all that was looked for
				conn.Close()
			case 1:
				_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n") // it may be cut off
			case 2:
				_, _ = io.WriteString(conn, "6.0") // as above
			}
		}
		client := b.run(t, append(args, "-d", "xr2", "-p", port, "127.0.0.1")...)
		server.wait(t)
		if client.code != exitOK || server.code != exitOK {
			t.Errorf("%q: client %d, %s; server %d, %s", args, client.code, client.stderr,
				server.code, server.stderr)
		}
		contains(t, server.stderr, "no client")
		if n := strings.Count(server.stderr, "no client"); n > maxComplaints {
			t.Errorf("%q: %d lines are logged", args, n)
		}
	}
}

// TestNobodyIsLetIn: when the context ends so do the listener and all connections, whatever they
// have said.
func TestNobodyIsLetIn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &app{logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	var conns []net.Conn
	for range 4 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(timeout.Scaled(time.Minute))); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	ended := make(chan error)
	go func() {
		_, err := a.letIn(ctx, listener)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, conn := range conns {
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) ||
			err == nil {
			t.Errorf("a connection is open: %v", err)
		}
	}
}
