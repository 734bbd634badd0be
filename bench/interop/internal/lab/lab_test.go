package lab

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMalformed(t *testing.T) {
	c := &Capture{firsts: []first{{1, "one"}, {3, "two"}}}
	bad, n := c.malformed("1 eth:ethertype:ip:udp:infiniband\n" +
		"2 eth:ethertype:ip:udp:data\n" +
		"3 eth:ethertype:ipv6:udp:infiniband:data\n" +
		"4 eth:ethertype:ipv6:udp:infiniband:_ws.malformed Malformed\n")
	if n != 4 || len(bad) != 2 || !strings.HasSuffix(bad[0], "of one") ||
		!strings.HasSuffix(bad[1], "of two") {
		t.Errorf("%d, %q", n, bad)
	}
}

// shell makes an end of a program, for Finish.
func shell(t *testing.T, command string) End {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	p, err := Start(exec.CommandContext(ctx, "sh", "-c", "exec "+command))
	if err != nil {
		t.Fatal(err)
	}
	return endOf(command, p, cancel)
}

func TestFinish(t *testing.T) {
	defer func(d time.Duration) { grace = d }(grace)
	grace = time.Millisecond
	if wrong := Finish(t.Context(), [2]End{shell(t, "true"), shell(t, "true")}); wrong != "" {
		t.Error(wrong)
	}
	// The one whose partner failed is stopped, and the failure is what is told.
	for _, ends := range [][2]End{
		{shell(t, "false"), shell(t, "sleep 1000")}, {shell(t, "sleep 1000"), shell(t, "false")},
	} {
		if wrong := Finish(t.Context(), ends); wrong != "false ended with status 1" {
			t.Error(wrong)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	ends := [2]End{shell(t, "sleep 1000"), shell(t, "sleep 1000")}
	if wrong := Finish(ctx, ends); wrong != "not done in time" {
		t.Error(wrong)
	}
}

// TestFinishWithoutEnd: an end that cannot be stopped, because its VM is gone, is waited
// for no longer than the run has time, and then is named.
func TestFinishWithoutEnd(t *testing.T) {
	defer func(d time.Duration) { grace = d }(grace)
	grace = time.Millisecond
	gone := End{
		Name: "rping", Done: make(chan struct{}), Stop: func() {}, Patience: time.Millisecond,
		Status: func() int { t.Error("it has not ended"); return 0 },
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as SIGTERM does
	wrong := Finish(ctx, [2]End{shell(t, "sleep 1000"), gone})
	if !strings.HasPrefix(wrong, "not done in time; ") ||
		!strings.HasSuffix(wrong, "rping cannot be stopped") {
		t.Error(wrong)
	}
	wrong = Finish(t.Context(), [2]End{shell(t, "false"), gone})
	if wrong != "false ended with status 1; rping cannot be stopped" {
		t.Error(wrong)
	}
}

func TestAwaitOutput(t *testing.T) {
	p, err := Start(exec.CommandContext(t.Context(), "sh", "-c", "echo listening; exec cat"))
	if err != nil {
		t.Fatal(err)
	}
	p.Wait() // its input is empty
	has := func(word string) func(string) bool {
		return func(s string) bool { return strings.Contains(s, word) }
	}
	if !p.Await(t.Context(), has("listening")) || p.Await(t.Context(), has("else")) {
		t.Error(p.Output())
	}
}
