package gen_test

import (
	"math"
	"testing"

	"xroce/roce/gen"
)

// TestTransit: what is told of times under way is right, also at their limits, and what cannot be
// is not believed.
func TestTransit(t *testing.T) {
	for _, tt := range []struct {
		add    []int64
		jitter int64
		want   gen.Transit
	}{
		{nil, 5, gen.Transit{}},
		{[]int64{-3}, 5, gen.Transit{}},
		{[]int64{30, 10, -7, 20}, 5, gen.Transit{Min: 10, Mean: 20, Max: 30, Jitter: 5}},
		{[]int64{math.MaxInt64, math.MaxInt64}, math.MaxInt64, gen.Transit{
			Min: gen.MaxTransit, Mean: gen.MaxTransit, Max: gen.MaxTransit, Jitter: gen.MaxTransit,
		}},
	} {
		var s gen.TransitSum
		for _, ns := range tt.add {
			s.Add(ns)
		}
		got := s.Transit(tt.jitter)
		if got != tt.want {
			t.Errorf("%d: %+v", tt.add, got)
		}
		f := flow(t, gen.Config{Path: path(true, false), Sizes: gen.List(100)})
		frame, answer := make([]byte, maxFrame), make([]byte, gen.MaxAnswer)
		end := frame[:f.End(frame, 2)]
		n := gen.Answer(answer, end, gen.Account{Received: 3, Transit: got})
		payload := answer[14+40+8 : n]
		told, ok := gen.ParseTransit(payload)
		if told != got || ok != (got.Max > 0) {
			t.Errorf("%+v is told as %+v, %t", got, told, ok)
		}
		if _, ok := gen.ParseTransit(payload[:len(payload)-1]); ok {
			t.Error("half of it is believed")
		}
		payload[gen.SignatureLen] = 0xff // a smallest that is larger than the largest
		if _, ok := gen.ParseTransit(payload); ok && got.Max != gen.MaxTransit {
			t.Error("what cannot be is believed")
		}
	}
}
