package traffic_test

import (
	"testing"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/encap"
	"xroce/roce/clock"
)

// segmented are the formats whose frames may go in segments.
func segmented() (names []string) {
	for _, s := range encap.Formats() {
		if s.Segmented > 0 && s.Carriers&(encap.Native|encap.Datagrams) != 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

// segmentedFlow is one of frames from those that fit to the longest, with mistakes on purpose.
func segmentedFlow(name string, flows int) traffic.PlanFlow {
	return traffic.PlanFlow{
		Format: name, Kind: "ethernet", Size: "100-9216/37", Payload: "random", Flows: flows,
		Faults: []string{"gap=40", "duplicate=50", "swap=30"},
	}
}

// collectAll has a sink take all that is on a link, of frames in a format, or in none.
func collectAll(t *testing.T, l *wireLink, c *virtual, name string) *traffic.Sink {
	t.Helper()
	var opener *traffic.Opener
	if name != "" {
		var err error
		if opener, err = traffic.NewOpener(name); err != nil {
			t.Fatal(err)
		}
	}
	sink := traffic.NewSink(opener)
	l.wait = func() { c.now += 50 * clock.Millisecond }
	err := (&traffic.Collector{Link: l, Sink: sink, Clock: c, For: clock.Second}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

// TestSegments: frames that are longer than a packet go in segments, those of several flows not
// among each other, and the sink counts them whole; mistakes are those of the frames inside. A
// frame that has begun when the count is reached is finished.
func TestSegments(t *testing.T) {
	for _, name := range segmented() {
		t.Run(name, func(t *testing.T) {
			l, c := newWireLink(), &virtual{look: 100, tick: 50 * clock.Microsecond}
			p := plan("max", 0, segmentedFlow(name, 5))
			p.Count = 3000
			s := sender(t, p, l, c)
			sent, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.End(none); err != nil {
				t.Fatal(err)
			}
			sink := collectAll(t, l, c, name)
			counts, all := sink.Counts()
			faults, seg, totals := traffic.Faults(s.Flows), sink.Segments(), sink.Totals()
			if counts.Lost != faults["gap"] || counts.Duplicates != faults["duplicate"] ||
				counts.Reordered == 0 || counts.Lost == 0 || counts.Duplicates == 0 {
				t.Errorf("%+v, on purpose %v", counts, faults)
			}
			// The link brings the answers back, one for each flow.
			if all != s.Numbered() || totals.Signed != sent.Whole || totals.Bytes != sent.Bytes ||
				totals.Foreign != 5 || !sink.Over() {
				t.Errorf("%+v of %d came, %+v", totals, all, sent)
			}
			stats := encap.ReassemblyStats{Completed: seg.Completed}
			if seg.Segments < 2500 || seg.Unfinished > 0 || seg.ReassemblyStats != stats ||
				sent.Frames < 3000 || sent.Frames > 3010 {
				t.Errorf("%+v of %+v", seg, sent)
			}
		})
	}
}

// TestSegmentsLost: a frame of which a segment is lost is lost, and the sink gives it up by name
// when its time is over, as it does with those that others crowd out.
func TestSegmentsLost(t *testing.T) {
	l, c := newWireLink(), &virtual{look: 100, tick: 50 * clock.Microsecond}
	l.lose = func(i int) bool { return i%100 == 50 }
	p := plan("max", 0, traffic.PlanFlow{Format: "vnic", Size: "4000"})
	p.Count = 3000
	s := sender(t, p, l, c)
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.End(none); err != nil {
		t.Fatal(err)
	}
	sink := collectAll(t, l, c, "vnic")
	counts, _ := sink.Counts()
	seg := sink.Segments()
	if counts.Lost != 30 || counts.Received != 970 || seg.Segments != 2970 ||
		seg.Completed != 970 || seg.Expired+seg.Stale != 30 || seg.Unfinished != 0 {
		t.Errorf("%+v, %+v", counts, seg)
	}
}

// TestSegmentsWhileStopped: a frame is not given up because its sink, and whoever sends, were
// stopped for longer than segments are waited for.
func TestSegmentsWhileStopped(t *testing.T) {
	l, c := newWireLink(), &virtual{look: 100, tick: 50 * clock.Microsecond}
	p := plan("max", 0, traffic.PlanFlow{Format: "vnic", Size: "4000"})
	p.Count = 6
	s := sender(t, p, l, c)
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	rest := l.frames[1:]
	l.frames = l.frames[:1]
	opener, err := traffic.NewOpener("vnic")
	if err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(opener)
	l.wait = func() {
		c.now += clock.Second
		l.frames, rest = rest, nil
	}
	collector := traffic.Collector{Link: l, Sink: sink, Clock: c, Count: 2, For: 10 * clock.Second}
	if err = collector.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seg := sink.Segments(); seg.Completed != 2 || seg.Expired+seg.Stale > 0 {
		t.Errorf("%+v", seg)
	}
}

// TestSegmentsBounded: however many frames are begun and not finished, by however many sources,
// the sink holds a bounded number of them.
func TestSegmentsBounded(t *testing.T) {
	p := plan("max", 0, traffic.PlanFlow{Format: "raw", Kind: "ethernet", Size: "9000"})
	opener, err := traffic.NewOpener("raw")
	if err != nil {
		t.Fatal(err)
	}
	sink := traffic.NewSink(opener)
	frame := make([]byte, 1518)
	for source := range 300 {
		r := route()
		r.Path.SrcMAC[4], r.Path.SrcMAC[3] = byte(source), byte(source>>8)
		flows, err := p.Make(r)
		if err != nil {
			t.Fatal(err)
		}
		sink.Expire(clock.Time(source))
		sink.Frame(frame[:flows[0].Next(frame, 1)], nil, 5)
	}
	seg := sink.Segments()
	if seg.Segments != 300 || seg.Unfinished == 0 || seg.Unfinished > 200 ||
		seg.CrowdedOut+seg.Unfinished != 300 {
		t.Errorf("%+v", seg)
	}
	sink.Expire(10 * clock.Second)
	if seg = sink.Segments(); seg.Unfinished != 0 || seg.Expired+seg.CrowdedOut != 300 {
		t.Errorf("when it is late: %+v", seg)
	}
}

// TestSegmentsAtOnce: the rate is that of what is on the wire, and the segments of a frame go
// without a pause, however slow it is.
func TestSegmentsAtOnce(t *testing.T) {
	l, c := newWireLink(), &virtual{look: 100, tick: 50 * clock.Microsecond}
	p := plan("20pps", 10*1e9, traffic.PlanFlow{Format: "eoib", Size: "4000"})
	s := sender(t, p, l, c)
	at := map[clock.Time]int{}
	l.lose = func(int) bool { at[c.now/clock.Millisecond]++; return false }
	sent, err := s.Run(t.Context())
	if err != nil || sent.Frames < 199 || sent.Frames > 202 || sent.Whole != sent.Frames/3 {
		t.Errorf("%+v, %v", sent, err)
	}
	for when, n := range at {
		if n%3 != 0 {
			t.Errorf("%d segments at %d ms", n, when)
		}
	}
}

// TestSegmentsAllocateNothing: neither to make nor to put together.
func TestSegmentsAllocateNothing(t *testing.T) {
	for _, name := range segmented() {
		flows := sender(t, plan("max", 0, traffic.PlanFlow{Format: name, Size: "9000"}),
			newWireLink(), &virtual{}).Flows
		opener, err := traffic.NewOpener(name)
		if err != nil {
			t.Fatal(err)
		}
		sink, frame := traffic.NewSink(opener), make([]byte, 1518)
		once := func() { sink.Frame(frame[:flows[0].Next(frame, 1)], nil, 5) }
		for range 100 {
			once()
		}
		if n := testing.AllocsPerRun(1000, once); n != 0 {
			t.Errorf("%s: %v allocations a segment", name, n)
		}
	}
}
