package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// A stoppedReader takes the beginning, and then nothing until it is closed.
type stoppedReader struct {
	taken  int
	stuck  chan struct{} // closed when somebody waits for it
	closed chan struct{}
}

func newStoppedReader() *stoppedReader {
	return &stoppedReader{stuck: make(chan struct{}), closed: make(chan struct{})}
}

func (s *stoppedReader) Write(b []byte) (int, error) {
	switch s.taken++; s.taken {
	case 1:
		return len(b), nil
	case 2:
		close(s.stuck)
	}
	<-s.closed
	return 0, io.ErrClosedPipe
}

// awaitStuck waits until a command cannot go on with its output.
func (s *stoppedReader) awaitStuck(t *testing.T, i *invocation) {
	t.Helper()
	select {
	case <-s.stuck:
	case <-i.done:
		t.Fatalf("ended with code %d before it was stuck: %s", i.code, i.stderr)
	case <-time.After(timeout.Scaled(time.Minute)):
		t.Fatal("is not stuck")
	}
}

// TestTcpdumpReaderStops: the program that is watched goes on and ends well.
func TestTcpdumpReaderStops(t *testing.T) {
	b, server, client := pingpongBench(t)
	pipe := newStoppedReader()
	stuck := b
	stuck.change = func(a *app) { a.stdout = pipe }
	dump := stuck.start(t, "tcpdump", "-i", "xr1", "-w", "-")
	dump.awaitReady(t)
	if i := b.run(t, client...); i.code != exitOK {
		t.Fatal(i.stderr)
	}
	if server.wait(t).code != exitOK {
		t.Error(server.stderr)
	}
	close(pipe.closed)
	if dump.wait(t).code != exitFailure || !strings.Contains(dump.stderr, "closed pipe") {
		t.Errorf("code %d: %s", dump.code, dump.stderr)
	}
}

// TestTcpdumpGivesUp: a reader that stopped for good does not keep the command from its end, which
// is a failure and says why, in whatever form the packets are.
func TestTcpdumpGivesUp(t *testing.T) {
	for _, form := range []string{"-w -", "", "--json"} {
		b, server, client := pingpongBench(t)
		pipe := newStoppedReader()
		if form != "-w -" {
			pipe.taken = 1 // there is no header, and all packets may come with one write
		}
		defer close(pipe.closed) // behind all: until then nothing is taken
		stuck := b
		stuck.change = func(a *app) { a.stdout, a.dumpPatience = pipe, time.Millisecond }
		dump := stuck.start(t, strings.Fields("tcpdump -i xr1 "+form)...)
		dump.awaitReady(t)
		if i := b.run(t, client...); i.code != exitOK {
			t.Fatal(i.stderr)
		}
		if server.wait(t).code != exitOK {
			t.Error(server.stderr)
		}
		pipe.awaitStuck(t, dump)
		dump.cancel()
		if dump.wait(t).code != exitFailure {
			t.Errorf("%q: code %d", form, dump.code)
		}
		contains(t, dump.stderr, "nobody takes what was captured: it is given up")
	}
}
