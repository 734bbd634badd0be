package load

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// udpOptions are those of two ends on this host.
func udpOptions(mode, local, remote string) worker.Options {
	return worker.Options{
		Mode: mode, Message: 64, Local: local, Remote: remote, Warmup: 20 * time.Millisecond,
		Window: timeout.Scaled(200 * time.Millisecond),
	}
}

// loopback is an address of this process on this host, of which there are four: the port is always
// the same, and others may run the same test.
func loopback(n uint32) string {
	const bits = 22 // of the numbers of processes
	pid := uint32(os.Getpid()) & (1<<bits - 1)
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 127<<24|pid<<2|n))).String()
}

// TestUDP: what one end sends the other counts, and echoes come back. An end that was not scheduled
// for all of its window has measured nothing, and has more.
func TestUDP(t *testing.T) {
	for ask, answer := range map[string]string{"post": "take", "ping": "echo"} {
		window := timeout.Scaled(200 * time.Millisecond)
		said, heard := bothUDP(t, ask, answer, window)
		for heard.Total == 0 || ask == "ping" && said.RTT == nil {
			if window *= 2; window > timeout.Scaled(10*time.Second) {
				t.Fatalf("%s %+v, %s %+v", ask, said, answer, heard)
			}
			said, heard = bothUDP(t, ask, answer, window)
		}
		if ask != "ping" && said.RTT != nil {
			t.Errorf("%s: round trips %+v", ask, said.RTT)
		}
	}
}

// bothUDP runs two modes against each other, and returns what both did.
func bothUDP(t *testing.T, ask, answer string, window time.Duration) (said, heard worker.Report) {
	t.Helper()
	type ended struct {
		r   worker.Report
		err error
	}
	ready, out := io.Pipe()
	answers := make(chan ended, 1)
	asks, listens := udpOptions(ask, loopback(1), loopback(0)), udpOptions(answer, loopback(0),
		loopback(1))
	asks.Window, listens.Window = window, window
	go func() {
		r, err := UDP(listens, strings.NewReader("go\n"), out)
		out.Close()
		answers <- ended{r, err}
	}()
	if _, err := io.ReadFull(ready, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err, <-answers)
	}
	began := time.Now()
	said, err := UDP(asks, strings.NewReader("go\n"), io.Discard)
	if err != nil {
		t.Fatalf("%s: %v", ask, err)
	}
	// Of an echo that is late only the other end knows: so often it was waited for in vain.
	most := said.Total + uint64(len(answer)) + uint64(time.Since(began)/udpRetry)
	select {
	case e := <-answers:
		if e.err != nil || e.r.Total > most {
			t.Errorf("%s %d, %s %d, %v", ask, said.Total, answer, e.r.Total, e.err)
		}
		return said, e.r
	case <-time.After(window + timeout.Scaled(20*time.Second)):
		t.Fatalf("%s does not end", answer)
	}
	return said, heard
}

// TestKnock: where nobody listens says so, and who does not answer is waited for no longer than
// the window.
func TestKnock(t *testing.T) {
	var out bytes.Buffer
	o := udpOptions("knock", loopback(1), loopback(2))
	o.Window = timeout.Scaled(10 * time.Second)
	if _, err := UDP(o, strings.NewReader("go\n"), &out); err != nil || out.String() != "ready\n" {
		t.Errorf("said %q, %v", &out, err)
	}
	out.Reset()
	o.Window = 100 * time.Millisecond
	ends, err := parseEnds(udpOptions("", loopback(2), loopback(1)))
	if err != nil {
		t.Fatal(err)
	}
	silent, err := dialUDP(ends) // takes it, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := UDP(o, strings.NewReader("go\n"), &out); err == nil || out.Len() > 0 {
		t.Errorf("said %q, %v", &out, err)
	}
}

func TestParseEnds(t *testing.T) {
	for _, o := range []worker.Options{
		udpOptions("ping", "nowhere", "127.0.0.1"), udpOptions("ping", "127.0.0.1", "::1"),
		{Local: "127.0.0.1", Remote: "127.0.0.2", Message: 7},
	} {
		if e, err := parseEnds(o); err == nil {
			t.Errorf("%+v: %+v, want an error", o, e)
		}
	}
}
