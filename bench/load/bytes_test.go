package load

import (
	"context"
	"net"
	"testing"
	"time"

	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// TestBytes has both ends of each work over TCP: what was written is read to the end.
func TestBytes(t *testing.T) {
	for ask, answer := range map[string]string{"post": "take", "ping": "echo"} {
		// An end that was not scheduled for all of its window has measured nothing, and has more.
		window := 20 * time.Millisecond
		said := bothEnds(t, ask, answer, window)
		for said.window.Seconds() <= 0 {
			if window *= 2; window > timeout.Scaled(10*time.Second) {
				t.Fatalf("%s: nothing measured in %v", ask, window)
			}
			said = bothEnds(t, ask, answer, window)
		}
		if ping := ask == "ping"; ping != (said.rtt != nil) {
			t.Errorf("%s: round trips %+v", ask, said.rtt)
		}
	}
}

// bothEnds runs two modes against each other, and returns what the first did.
func bothEnds(t *testing.T, ask, answer string, window time.Duration) done {
	t.Helper()
	o := worker.Options{Message: 1000, Warmup: time.Millisecond, Window: window}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan done, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			close(heard)
			return
		}
		defer c.Close()
		d, err := carried(c, o, tcpModes[answer].run)
		if err != nil {
			t.Error(err)
		}
		heard <- d
	}()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	said, err := carried(c, o, tcpModes[ask].run)
	if err != nil {
		t.Fatal(err)
	}
	got := <-heard
	if got.total != said.total || said.total == 0 && said.window.Seconds() > 0 {
		t.Errorf("%s: %d went, %d came", ask, said.total, got.total)
	}
	return said
}
