package analyze

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// check holds the bounds of an Analyzer.
func (a *Analyzer) check(t testing.TB) {
	t.Helper()
	if len(a.order) > MaxFlows || len(a.flows) != len(a.order) || len(a.requests) > maxRequests ||
		len(a.messages) > maxRequests || len(a.report.Rejected) > maxListed {
		t.Fatalf("%d flows, %d requests, %d messages", len(a.order), len(a.requests),
			len(a.messages))
	}
	for _, f := range a.order {
		if len(f.window.list) > maxOutstanding || len(f.gaps) > maxGaps ||
			len(f.new.Bytes) > maxBuckets || len(f.again.Bytes) > maxBuckets ||
			len(f.points.List) > maxPoints || f.peer != nil && f.peer.peer != f {
			t.Fatalf("%d operations, %d gaps, %d buckets, %d points", len(f.window.list),
				len(f.gaps), len(f.new.Bytes), len(f.points.List))
		}
	}
}

// TestBounded: random packets of many queue pairs and times take no more than there is for them.
func TestBounded(t *testing.T) {
	var ops []wire.Opcode
	for op := range wire.Opcodes() {
		ops = append(ops, op)
	}
	var template wire.Template
	path := wire.Path{
		Framing: wire.FramingV2IPv4, HopLimit: 64,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}
	if err := template.Init(path); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	a := New()
	var d dissect.Dissector
	var p dissect.Packet
	at := clock.Time(0)
	for i := range 12_000 {
		op := ops[random.IntN(len(ops))]
		n := 0
		for !op.Spec().Payload.Allows(n, 256) {
			n += 8
		}
		packet := roctest.Packet{
			Opcode: op, DestQP: uint32(random.IntN(3000)), PSN: wire.PSN(random.IntN(100)),
			Payload: make([]byte, n),
		}
		frame := packet.Frame(&template)
		at += clock.Time(random.Int64N(int64(clock.Second))) >> random.IntN(30)
		if random.IntN(100) == 0 {
			at -= clock.Second // a clock that was set
		}
		d.Dissect(dissect.LinkEthernet, frame, len(frame), &p)
		a.Add(i+1, at, 0, &p)
	}
	a.check(t)
	if r := a.Report(); r.RoCE != 12_000 || r.NotFollowed == 0 || len(r.Diagnosis) > maxFindings+1 {
		t.Errorf("%d packets, %d not followed, %d findings", r.RoCE, r.NotFollowed,
			len(r.Diagnosis))
	}
}

// TestHistogram: quantiles are right within a quarter, at every scale.
func TestHistogram(t *testing.T) {
	for _, unit := range []clock.Time{1, 1000, clock.Second, 1 << 50} {
		var h Histogram
		for i := range clock.Time(1000) {
			h.Add((i + 1) * unit)
		}
		h.Add(-5)
		for _, q := range []float64{0.5, 0.9, 0.99} {
			want := float64(unit) * 1000 * q
			if got := float64(h.Quantile(q)); got < want*0.95 || got > want*1.3 {
				t.Errorf("unit %d: %v is %g, want about %g", unit, q, got, want)
			}
		}
		if h.Min != 0 || h.Max != 1000*unit || h.Count != 1001 {
			t.Errorf("%d to %d, %d", h.Min, h.Max, h.Count)
		}
	}
}

// TestSeries: bytes are not lost when buckets become wider.
func TestSeries(t *testing.T) {
	var s Series
	at := clock.Time(5)
	for i := range clock.Time(5000) {
		s.add(at, 3)
		at += i * clock.Microsecond
	}
	sum := uint64(0)
	for _, n := range s.Bytes {
		sum += n
	}
	if sum != 15000 || len(s.Bytes) > maxBuckets || len(s.Bytes) < maxBuckets/4 {
		t.Errorf("%d bytes in %d buckets", sum, len(s.Bytes))
	}
}

// FuzzAnalyze: no packets make an Analyzer panic or grow.
func FuzzAnalyze(f *testing.F) {
	for _, name := range []string{"loss_cas_ack_v4", "cm_no_listener_v4", "rc_rnr_exceeded_v4"} {
		f.Add(capturedFrames(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := New()
		var d dissect.Dissector
		var p dissect.Packet
		for i := 0; len(data) > 4; i++ {
			n := min(int(data[0])<<8|int(data[1]), len(data)-4)
			at := clock.Time(data[2]) << (data[3] & 63)
			d.Dissect(dissect.LinkEthernet, data[4:4+n], n, &p)
			a.Add(i, at, 0, &p)
			data = data[4+n:]
		}
		a.check(t)
		a.Report()
	})
}

// TestRecent: directions whose place among the recent ones is the same, because their queue pairs
// or only who sends differ, are not taken for each other.
func TestRecent(t *testing.T) {
	r := newRig(t)
	to := wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2"))
	slot, same := recentOf(&to, 0x22), []uint32{0x22}
	for qpn := uint32(0x23); len(same) < 3; qpn++ {
		if recentOf(&to, qpn) == slot {
			same = append(same, qpn)
		}
	}
	other := wire.Path{
		Framing: wire.FramingV2IPv4, HopLimit: 64, Dst: to,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.3")),
	}
	paths := [2]wire.Template{r.paths[0], r.paths[0]}
	if err := paths[1].Init(other); err != nil {
		t.Fatal(err)
	}
	const turns = 10
	for n := range turns {
		for i := range paths {
			r.paths[0] = paths[i]
			for _, qpn := range same {
				r.give(0, clock.Millisecond, roctest.Packet{
					Opcode: wire.UCSendOnly, PSN: wire.PSN(n), DestQP: qpn,
					Payload: make([]byte, 4),
				})
			}
		}
	}
	if len(r.a.order) != 2*len(same) {
		t.Fatalf("%d directions", len(r.a.order))
	}
	for _, f := range r.a.order {
		if f.packets != turns || f.missing.Count > 0 || f.resent[UnknownWhy].Packets.Count > 0 {
			t.Errorf("%+v: %d packets", f.route, f.packets)
		}
	}
}
