package worker

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestOptionsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 1<<20)
		ms := rapid.Map(rapid.IntRange(0, 1<<20), func(n int) time.Duration {
			return time.Duration(n) * time.Millisecond
		})
		want := Options{
			Mode:      rapid.SampledFrom([]string{"tx", "rx", "fwd", "ping"}).Draw(t, "mode"),
			Interface: rapid.StringMatching(`[a-z0-9]{0,15}`).Draw(t, "interface"),
			Queue:     count.Draw(t, "queue"),
			Size:      count.Draw(t, "size"),
			Message:   count.Draw(t, "message"),
			Batch:     count.Draw(t, "batch"),
			Budget:    count.Draw(t, "budget"),
			RxFrames:  count.Draw(t, "rx frames"),
			TxFrames:  count.Draw(t, "tx frames"),
			SendBuf:   count.Draw(t, "send buffer"),
			Warmup:    ms.Draw(t, "warm-up"),
			Window:    ms.Draw(t, "window"),
			Header:    rapid.SliceOfN(rapid.Byte(), 0, 128).Draw(t, "header"),
			Local:     rapid.SampledFrom([]string{"", "192.0.2.1"}).Draw(t, "local"),
			Remote:    rapid.SampledFrom([]string{"", "192.0.2.2"}).Draw(t, "remote"),
			Port:      count.Draw(t, "port"),
			QPs:       count.Draw(t, "queue pairs"),
			Seed:      count.Draw(t, "seed"),
			LossPPM:   count.Draw(t, "loss"),
			Selective: rapid.Bool().Draw(t, "selective"),
			Protocol:  rapid.SampledFrom([]string{"", "get"}).Draw(t, "protocol"),
		}
		got, err := Parse(want.Args())
		if err != nil {
			t.Fatalf("Parse(%q): %v", want.Args(), err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"tx", "rx"}, {"-x", "0g", "tx"}, {"-s", "many", "tx"}} {
		if o, err := Parse(args); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", args, o)
		}
	}
}

func TestWindow(t *testing.T) {
	w := NewWindow(Options{Warmup: time.Second, Window: 2 * time.Second})
	at := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	steps := []struct {
		at      float64 // seconds since the plan
		packets uint64
		open    bool // Open afterwards
		goOn    bool // result of Tick
	}{
		{0, 0, false, true},
		{0.9, 90, false, true},
		{1.1, 110, true, true},
		{2.9, 290, true, true},
		{3.1, 310, true, false},
		{9.9, 990, true, false},
	}
	for _, s := range steps {
		if got := w.Tick(at(s.at), s.packets); got != s.goOn {
			t.Errorf("Tick at %v s = %v, want %v", s.at, got, s.goOn)
		}
		if w.Open() != s.open {
			t.Errorf("at %v s open is %v, want %v", s.at, w.Open(), s.open)
		}
	}
	if now := w.Now(); now < 0 {
		t.Errorf("the clock shows %v", now)
	}
	if w.Packets() != 200 {
		t.Errorf("Packets() = %d, want 200", w.Packets())
	}
	if got := w.Seconds(); got < 1.9999 || got > 2.0001 {
		t.Errorf("Seconds() = %v, want 2: the borders as they came", got)
	}
}

func TestWindowCloses(t *testing.T) {
	for _, open := range []bool{true, false} {
		w := NewWindow(Options{Window: time.Hour})
		if open {
			w.Tick(0, 10)
		}
		w.Close(30)
		first := w.Seconds()
		w.Close(50)
		if w.Packets() > 20 || (w.Packets() == 20) != open || w.Cost() == nil {
			t.Errorf("open %v: %d packets, cost %v", open, w.Packets(), w.Cost())
		}
		if w.Seconds() != first || first < 0 || (first > 0) != open {
			t.Errorf("open %v: %v s, then %v s", open, first, w.Seconds())
		}
	}
}

func TestReady(t *testing.T) {
	var out bytes.Buffer
	if err := Ready(strings.NewReader("go\n"), &out); err != nil || out.String() != "ready\n" {
		t.Errorf("Ready: %v, said %q", err, out.String())
	}
	if err := Ready(strings.NewReader(""), &out); !errors.Is(err, errNoGo) {
		t.Errorf("Ready with the harness gone: %v, want %v", err, errNoGo)
	}
}

func TestExchange(t *testing.T) {
	var out bytes.Buffer
	peer, err := Exchange(strings.NewReader("go 7 192.0.2.2\n"), &out, "5 192.0.2.1")
	if err != nil || peer != "7 192.0.2.2" || out.String() != "ready 5 192.0.2.1\n" {
		t.Errorf("Exchange: %q, %v, said %q", peer, err, out.String())
	}
	p, err := Start(t.Context(), "sh", "-c", `echo ready mine; read go; echo "$go" >&2; exit 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if card, err := p.Ready(); err != nil || card != "mine" {
		t.Errorf("Ready: %q, %v, want the card", card, err)
	}
	if err := p.Go("yours"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Report(0); err == nil || !strings.Contains(err.Error(), "go yours") {
		t.Errorf("the worker did not get the card: %v", err)
	}
}

func TestProcess(t *testing.T) {
	want := Report{
		Packets: 10, Bytes: 640, Seconds: 2, Total: 12, Mode: "native copy",
		RTT:      &RTT{Samples: 3, P50: 1, P90: 2, P99: 3, P999: 4, Max: 5},
		Cost:     &Cost{UserTime: 1, Cycles: &Cycles{2, 3}, Heap: &Heap{4, 5}},
		Counters: map[string]uint64{"rx_dropped": 7},
	}
	var line bytes.Buffer
	if _, err := want.WriteTo(&line); err != nil {
		t.Fatal(err)
	}
	script := "echo ready; read go; echo '" + strings.TrimSpace(line.String()) + "'"
	p, err := Start(t.Context(), "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if card, err := p.Ready(); err != nil || card != "" {
		t.Fatalf("Ready: %q, %v", card, err)
	}
	if err := p.Go(""); err != nil {
		t.Fatal(err)
	}
	got, err := p.Report(0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.PerSecond() != 5 {
		t.Errorf("PerSecond() = %v, want 5", got.PerSecond())
	}
}

func TestProcessFailures(t *testing.T) {
	tests := []struct {
		name, script, want string
	}{
		{"dies", "echo no such queue >&2; exit 1", "no such queue"},
		{"says something else", "echo hello", `said "hello", not ready`},
		{"dies at work", "echo ready; read go; echo broke >&2; exit 1", "broke"},
		{"reports nonsense", "echo ready; read go; echo nonsense", "report: "},
		{"fails after its report", "echo ready; read go; echo '{}'; exit 3", "exit status 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Start(t.Context(), "sh", "-c", tt.script)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Ready()
			if err == nil {
				if err = p.Go(""); err == nil {
					_, err = p.Report(0)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
