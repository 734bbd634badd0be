package encap

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/clock"
)

// seg is a segment as a receiver has it.
func seg(id uint16, index int, more bool, b []byte) *Packet {
	return &Packet{
		Format: EoIB, Kind: Ethernet, Datagram: b[: len(b)/2 : len(b)/2], Tail: b[len(b)/2:],
		Segment: Segment{ID: id, Index: uint8(index), More: more},
	}
}

func newReassembler(tb testing.TB, c ReassemblerConfig) *Reassembler {
	tb.Helper()
	r, err := NewReassembler(c)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// A modelFrame is what the model knows of a frame: which segments came, and nothing of where
// they are kept.
type modelFrame struct {
	source uint64
	id     uint16
	began  clock.Time
	got    map[int][]byte
	last   int // index, -1 while unknown
}

// A model is a Reassembler without places: a list of frames, the oldest first.
type model struct {
	config ReassemblerConfig
	frames []*modelFrame
}

// add is Reassembler.Add, of frames whose segments do not contradict each other.
func (m *model) add(now clock.Time, source uint64, p *Packet) []byte {
	var keep []*modelFrame
	var mine *modelFrame
	for _, f := range m.frames {
		ahead := int16(p.Segment.ID - f.id)
		switch {
		case now-f.began >= m.config.Lifetime:
		case f.source == source && ahead > staleAfter:
		default:
			keep = append(keep, f)
			if f.source == source && ahead == 0 {
				mine = f
			}
		}
	}
	m.frames = keep
	if mine == nil {
		m.makeRoom(source)
		mine = &modelFrame{
			source: source, id: p.Segment.ID, began: now, got: map[int][]byte{}, last: -1,
		}
		m.frames = append(m.frames, mine)
	}
	b := make([]byte, p.Len())
	p.CopyTo(b)
	mine.got[int(p.Segment.Index)] = b
	if !p.Segment.More {
		mine.last = int(p.Segment.Index)
	}
	if len(mine.got) != mine.last+1 {
		return nil
	}
	var frame []byte
	for i := range mine.last + 1 {
		frame = append(frame, mine.got[i]...)
	}
	m.remove(mine)
	return frame
}

// makeRoom drops the oldest of a source that has its share, or of the one that has the most.
func (m *model) makeRoom(source uint64) {
	count := map[uint64]int{}
	for _, f := range m.frames {
		count[f.source]++
	}
	most := 0
	for _, n := range count {
		most = max(most, n)
	}
	for _, f := range m.frames {
		if count[source] >= m.config.PerSource && f.source == source ||
			count[source] < m.config.PerSource && len(m.frames) == m.config.Frames &&
				count[f.source] == most {
			m.remove(f)
			return
		}
	}
}

func (m *model) remove(f *modelFrame) {
	for i := range m.frames {
		if m.frames[i] == f {
			m.frames = append(m.frames[:i:i], m.frames[i+1:]...)
			return
		}
	}
}

// TestReassemblyModel: segments of several senders that are lost, come twice, late and in any
// order make the same frames as in the model, or none.
func TestReassemblyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := ReassemblerConfig{
			Frames: rapid.IntRange(1, 6).Draw(t, "frames"), Largest: 600,
			PerSource: rapid.IntRange(1, 4).Draw(t, "per source"),
			Lifetime:  clock.Time(rapid.IntRange(5, 60).Draw(t, "lifetime")),
		}
		r, err := NewReassembler(config)
		if err != nil {
			t.Fatal(err)
		}
		m := &model{config: config}
		wire := segments(t, config.Largest)
		now := clock.Time(1)
		for _, s := range wire {
			now++ // so that no two frames are equally old
			p := *s.packet
			got, reason := r.Add(now, s.source, &p)
			want := m.add(now, s.source, s.packet)
			if reason != OK && reason != Duplicate {
				t.Fatalf("%s", reason)
			}
			if (got == nil) != (want == nil) || !bytes.Equal(got, want) {
				t.Fatalf("frame %d of %d: %d bytes, want %d", s.packet.Segment.ID, s.source,
					len(got), len(want))
			}
			if got != nil && !bytes.Equal(got, s.frame) {
				t.Fatalf("frame %d of %d is another", s.packet.Segment.ID, s.source)
			}
			if r.Held() != len(m.frames) || r.Held() > config.Frames {
				t.Fatalf("%d frames are held, want %d", r.Held(), len(m.frames))
			}
		}
		r.HandleDeadline(now + config.Lifetime)
		if r.Held() != 0 || r.NextDeadline() != 0 {
			t.Fatal("not everything is forgotten")
		}
	})
}

// A sent segment knows which frame it is of.
type sent struct {
	source uint64
	packet *Packet
	frame  []byte
}

// segments draws what comes from a wire that loses, repeats and reorders.
func segments(t *rapid.T, largest int) (wire []sent) {
	seed := rapid.Uint64().Draw(t, "seed")
	random := rand.New(rand.NewPCG(seed, 1))
	loss := rapid.Float64Range(0, 0.4).Draw(t, "loss")
	twice := rapid.Float64Range(0, 0.3).Draw(t, "twice")
	reach := rapid.IntRange(0, 8).Draw(t, "reordering")
	first := uint16(rapid.IntRange(65500, 65600).Draw(t, "ID")) // it wraps
	for i := range rapid.IntRange(1, 30).Draw(t, "frames sent") {
		source := uint64(random.IntN(3))
		frame := datagram(Ethernet, 14+random.IntN(largest-13), random)
		size := (len(frame)-1)/(1+random.IntN(6)) + 1
		size = max(size, (len(frame)+MaxSegments-1)/MaxSegments)
		for at, n := 0, 0; at < len(frame); at, n = at+size, n+1 {
			end := min(at+size, len(frame))
			s := sent{source, seg(first+uint16(i), n, end < len(frame), frame[at:end]), frame}
			for copies := 1; copies > 0; copies-- {
				if random.Float64() >= loss {
					wire = append(wire, s)
				}
				if random.Float64() < twice {
					copies++
				}
			}
		}
	}
	for i := range wire {
		j := min(i+random.IntN(reach+1), len(wire)-1)
		wire[i], wire[j] = wire[j], wire[i]
	}
	return wire
}

// TestContradictions: segments that cannot be of one frame end it, each by its name, and what
// came of it is never delivered.
func TestContradictions(t *testing.T) {
	a, b, short := bytes.Repeat([]byte{1}, 40), bytes.Repeat([]byte{2}, 40), make([]byte, 20)
	fcs := seg(1, 1, true, a)
	fcs.FCS = true
	checks := seg(1, 1, true, a)
	checks.Checks = IPGood
	for name, tt := range map[string]struct {
		packets []*Packet
		want    Reason
	}{
		"the same":      {[]*Packet{seg(1, 0, true, a), seg(1, 0, true, a)}, Duplicate},
		"the same last": {[]*Packet{seg(1, 2, false, a), seg(1, 2, false, a)}, Duplicate},
		"the same, placed": {
			[]*Packet{seg(1, 0, true, a), seg(1, 2, false, a), seg(1, 2, false, a)}, Duplicate,
		},
		"other bytes":         {[]*Packet{seg(1, 0, true, a), seg(1, 0, true, b)}, Conflict},
		"other bytes of last": {[]*Packet{seg(1, 2, false, a), seg(1, 2, false, b)}, Conflict},
		"other length":        {[]*Packet{seg(1, 0, true, a), seg(1, 0, true, short)}, Conflict},
		"last and not":        {[]*Packet{seg(1, 1, false, a), seg(1, 1, true, a)}, Conflict},
		"not last and last":   {[]*Packet{seg(1, 1, true, a), seg(1, 1, false, a)}, Conflict},
		"overlap":             {[]*Packet{seg(1, 0, true, a), seg(1, 1, true, short)}, Conflict},
		"last longer":         {[]*Packet{seg(1, 0, true, short), seg(1, 1, false, a)}, Conflict},
		"last was longer":     {[]*Packet{seg(1, 1, false, a), seg(1, 0, true, short)}, Conflict},
		"two last":            {[]*Packet{seg(1, 2, false, a), seg(1, 3, false, a)}, Conflict},
		"behind the last":     {[]*Packet{seg(1, 1, false, a), seg(1, 2, true, a)}, Conflict},
		"last before others":  {[]*Packet{seg(1, 2, true, a), seg(1, 1, false, a)}, Conflict},
		"FCS":                 {[]*Packet{seg(1, 0, true, a), fcs}, Conflict},
		"checks":              {[]*Packet{seg(1, 0, true, a), checks}, Conflict},
		"too long":            {[]*Packet{seg(1, 25, true, a)}, TooLong},
		"last too far":        {[]*Packet{seg(1, 0, true, a), seg(1, 26, false, a)}, TooLong},
		"last was too far":    {[]*Packet{seg(1, 26, false, a), seg(1, 0, true, a)}, TooLong},
		"last too long":       {[]*Packet{seg(1, 1, false, make([]byte, 1001))}, TooLong},
		"no frame": {
			[]*Packet{seg(1, 0, true, short[:6]), seg(1, 1, false, short[:6])}, TooShort,
		},
	} {
		r := newReassembler(t, ReassemblerConfig{Largest: 1000})
		for i, p := range tt.packets {
			frame, reason := r.Add(1, 1, p)
			want := OK
			if i == len(tt.packets)-1 {
				want = tt.want
			}
			if frame != nil || reason != want {
				t.Errorf("%s, segment %d: %s, want %s", name, i, reason, want)
			}
		}
		held, broken := 0, uint64(1)
		if tt.want == Duplicate {
			held, broken = 1, 0
		}
		if r.Held() != held || r.Stats().Broken != broken {
			t.Errorf("%s: %d held, %+v", name, r.Held(), r.Stats())
		}
	}
}

// TestEndless: a sender that never ends a frame holds no more than its share, and not for
// longer than the lifetime, and does not take that of others.
func TestEndless(t *testing.T) {
	piece := make([]byte, 100)
	r := newReassembler(t, ReassemblerConfig{Frames: 8, PerSource: 4, Lifetime: 1000})
	for i := range 10_000 {
		// 32 sources, each with frames that begin, and of which a second segment comes.
		_, _ = r.Add(2, uint64(i%32), seg(uint16(i/64), i/32%2, true, piece))
		if r.Held() > 8 {
			t.Fatalf("%d are held", r.Held())
		}
	}
	r = newReassembler(t, ReassemblerConfig{Frames: 8, PerSource: 4, Lifetime: 1000})
	_, _ = r.Add(1, 1, seg(7, 0, true, piece))
	for i := range 10_000 {
		_, _ = r.Add(2, uint64(2+i%2), seg(uint16(i), 0, true, piece))
	}
	frame, reason := r.Add(3, 1, seg(7, 1, false, piece))
	if reason != OK || len(frame) != 200 {
		t.Errorf("two that flood: %s, %d bytes", reason, len(frame))
	}
	if r.Held() != 7 || r.NextDeadline() != 1002 {
		t.Errorf("%d held, deadline %d", r.Held(), r.NextDeadline())
	}
	// Segments that go on coming do not make a frame live longer.
	for i := 1; i < 6; i++ {
		_, _ = r.Add(clock.Time(3+150*i), 1, seg(9, i, true, piece))
	}
	r.HandleDeadline(1152)
	if s := r.Stats(); r.Held() != 1 || s.Expired != 7 || s.Completed != 1 {
		t.Errorf("%d held, %+v", r.Held(), s)
	}
	r.HandleDeadline(1153)
	if r.Held() != 0 {
		t.Error("it still lives")
	}
}

// TestIDComesAgain: what is left of a frame does not meet one with the same ID, and frames of
// two switches and two sources are apart.
func TestIDComesAgain(t *testing.T) {
	r := newReassembler(t, ReassemblerConfig{})
	a, b := bytes.Repeat([]byte{1}, 40), bytes.Repeat([]byte{2}, 40)
	_, _ = r.Add(1, 1, seg(5, 1, false, a)) // its first segment was lost
	_, _ = r.Add(1, 1, seg(5+staleAfter+1, 0, true, b))
	if got, _ := r.Add(1, 1, seg(5, 0, true, b)); got != nil {
		t.Errorf("two frames were mixed: %x", got)
	}
	if r.Stats().Stale != 1 {
		t.Errorf("%+v", r.Stats())
	}
	other := seg(9, 1, false, a)
	other.Switch = 2
	for _, p := range []*Packet{seg(9, 0, true, b), other} {
		if got, reason := r.Add(1, 1, p); got != nil || reason != OK {
			t.Errorf("switches were mixed: %s", reason)
		}
	}
	if got, _ := r.Add(1, 2, seg(9, 1, false, a)); got != nil {
		t.Error("sources were mixed")
	}
}

// TestSegmentedFCS: the FCS behind a frame in segments is checked when it is whole.
func TestSegmentedFCS(t *testing.T) {
	frame := append(make([]byte, 14), "123456789\xcc\x09\x5d\x5f"...)
	for _, wrong := range []byte{0, 1} {
		frame[0] = wrong
		r := newReassembler(t, ReassemblerConfig{})
		var got []byte
		var reason Reason
		for i := range 3 {
			p := seg(1, i, i < 2, frame[9*i:][:9])
			p.FCS = true
			got, reason = r.Add(1, 1, p)
		}
		if wrong == 0 && !bytes.Equal(got, frame[:23]) || wrong == 1 && reason != BadFCS {
			t.Errorf("%s, %x", reason, got)
		}
	}
}

func TestReassemblerConfig(t *testing.T) {
	for _, c := range []ReassemblerConfig{
		{Frames: -1},
		{Frames: maxFrames + 1},
		{PerSource: -1},
		{Largest: 13},
		{Largest: largestSegment + 1},
		{Lifetime: -1},
	} {
		if _, err := NewReassembler(c); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
