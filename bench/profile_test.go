package main

import (
	"context"
	"math"
	"slices"
	"testing"

	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// top is what go tool pprof prints.
const top = `File: bench
Type: cpu
Showing nodes accounting for 0.95s, 95.00% of 1s total
      flat  flat%   sum%        cum   cum%
     0.40s 40.00% 40.00%      0.40s 40.00%  internal/runtime/syscall/linux.Syscall6
     0.15s 15.00% 55.00%      0.15s 15.00%  hash/crc32.ieeeCLMUL
     0.05s  5.00% 60.00%      0.05s  5.00%  example.org/roce/wire.crcBTH (inline)
     0.10s 10.00% 70.00%      0.10s 10.00%  runtime.memmove
     0.10s 10.00% 80.00%      0.80s 80.00%  example.org/roce.(*QP).NextPacket
     0.05s  5.00% 85.00%      0.05s  5.00%  example.org/roce/mem.(*Keys).grant
     0.07s  7.00% 92.00%      0.07s  7.00%  example.org/engine.(*queue).progress
     0.03s  3.00% 95.00%      0.03s  3.00%  runtime.nanotime
`

func TestParseTop(t *testing.T) {
	got, err := parseTop([]byte(top))
	want := result.Parts{
		Kernel: 0.4, Copy: 0.1, CRC: 0.2, Protocol: 0.15, Rounds: 0.07, Rest: 0.03,
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range got.List() {
		if w := want.List()[i]; math.Abs(p.Share-w.Share) > 1e-9 {
			t.Errorf("%s: %v, want %v", p.Name, p.Share, w.Share)
		}
	}
	for _, text := range []string{"", "pprof: no such file\n"} {
		if _, err := parseTop([]byte(text)); err == nil {
			t.Errorf("%q is a profile", text)
		}
	}
}

// TestProfiled: the cases are there, and ours is the first.
func TestProfiled(t *testing.T) {
	for _, w := range profiled {
		cases := choose(allCases(), w.name, false)
		if len(cases) == 0 || cases[0].name != w.name || cases[0].variants[0].needs[0] != rc {
			t.Errorf("there is no case %s of ours", w.name)
			continue
		}
		named := func(v variant) bool { return v.name == w.variant }
		if w.variant != "" && !slices.ContainsFunc(cases[0].variants, named) {
			t.Errorf("%s has no variant %q", w.name, w.variant)
		}
	}
}

// TestWithTwice: options that are special to a profile do not take those of the variant away,
// nor stay in the place.
func TestWithTwice(t *testing.T) {
	p := &place{}
	run := runFunc(func(_ context.Context, p *place) (measurement, error) {
		o := worker.Options{}
		p.tune(stage.A, &o)
		return measurement{value: float64(o.QPs), loss: float64(len(o.Profile))}, nil
	})
	set := func(_ stage.Side, o *worker.Options) { o.QPs = 7 }
	outer := func(_ stage.Side, o *worker.Options) { o.Profile = "name" }
	m, err := run.with(set).with(outer)(t.Context(), p)
	if err != nil || m.value != 7 || m.loss != 4 {
		t.Errorf("%v queue pairs, a name of %v bytes, %v", m.value, m.loss, err)
	}
	if p.tune != nil {
		t.Error("the options of a variant stay in the place")
	}
}
