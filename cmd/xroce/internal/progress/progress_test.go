package progress

import (
	"strings"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	now := time.Unix(1000, 0)
	clock := func() time.Time { return now }
	var line, log strings.Builder
	onTerminal := New(&line, true, "f", false, clock)
	elsewhere := New(&log, false, "f", true, clock)
	for range 100 {
		now = now.Add(150 * time.Millisecond)
		done := now.Sub(time.Unix(1000, 0)).Milliseconds() << 10
		onTerminal.Update(done, 30000<<10)
		elsewhere.Update(done>>10, 30000)
	}
	onTerminal.Close()
	elsewhere.Close()
	want := "\rf: 7.3 MiB of 29.3 MiB, 0.01 Gb/s, 25 %, ETA 23s"
	if !strings.Contains(line.String(), want) {
		t.Errorf("on a terminal: %q has no %q", line.String(), want)
	}
	if want := "f: 10050 of 30000, 1000.0/s, 34 %, ETA 20s\n"; log.String() != want {
		t.Errorf("elsewhere: %q, not %q", log.String(), want)
	}
	if got := line.String(); got[len(got)-1] != '\r' || got[:1] != "\r" {
		t.Errorf("the line is not wiped: %q", got)
	}
}

// TestFrom: what was there before is not of the rate.
func TestFrom(t *testing.T) {
	now := time.Unix(1000, 0)
	var log strings.Builder
	l := New(&log, false, "f", true, func() time.Time { return now })
	now = now.Add(5 * time.Second)
	l.From(1000)
	now = now.Add(5 * time.Second)
	l.Update(1010, 1020)
	if want := "f: 1010 of 1020, 2.0/s, 99 %, ETA 5s\n"; log.String() != want {
		t.Errorf("%q, not %q", log.String(), want)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 64 << 20: "64.0 MiB",
		5 << 60: "5.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, not %s", n, got, want)
		}
	}
}
