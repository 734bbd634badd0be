package gen_test

import (
	"bytes"
	"testing"

	"xroce/roce/gen"
	"xroce/roce/wire"
)

func fuzzer(t testing.TB, v6 bool, seed, first uint64) *gen.Fuzzer {
	t.Helper()
	f, err := gen.NewFuzzer(path(v6, v6), maxFrame, seed, first, []uint32{0x11})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFuzzerReplays: the packet of a number is the same when the run begins with it, and another
// seed makes others.
func TestFuzzerReplays(t *testing.T) {
	a, b := make([]byte, maxFrame), make([]byte, maxFrame)
	all := fuzzer(t, false, 7, 0)
	same := 0
	for i := range uint64(2000) {
		n := all.Next(a, 0)
		one := fuzzer(t, false, 7, i)
		if !bytes.Equal(a[:n], b[:one.Next(b, 0)]) || one.Number() != i+1 {
			t.Fatalf("packet %d is another one", i)
		}
		if bytes.Equal(a[:n], b[:fuzzer(t, false, 8, i).Next(b, 0)]) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d packets are the same with another seed", same)
	}
	for m, n := range all.Made() {
		if n < 100 {
			t.Errorf("%s: %d of 2000", gen.Mutation(m), n)
		}
	}
}

// TestFuzzerReaches: a packet that is not damaged on the way has a right ICRC as far as it can
// be decoded, or nobody would look further; and our own decoder refuses many, for many reasons.
func TestFuzzerReaches(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		f := fuzzer(t, v6, 1, 0)
		frame := make([]byte, maxFrame)
		reasons := map[wire.Reason]int{}
		var p wire.Packet
		for range 3000 {
			before := f.Made()
			n := f.Next(frame, 0)
			after := f.Made()
			r := p.Decode(frame[:n], nil)
			reasons[r]++
			damaged := after[gen.MutateBits] > before[gen.MutateBits] ||
				after[gen.MutateClaims] > before[gen.MutateClaims]
			if r == wire.OK && !damaged && !p.VerifyICRC() {
				t.Fatalf("wrong ICRC: %x", frame[:n])
			}
		}
		if reasons[wire.OK] < 500 || len(reasons) < 6 {
			t.Errorf("IPv6 %t: %v", v6, reasons)
		}
	}
	if _, err := gen.NewFuzzer(path(false, false), 500, 1, 0, nil); err == nil {
		t.Error("packets fit an interface of 500 bytes")
	}
}
