package gen_test

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/gen"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// shell puts frames behind so many bytes, in segments what is longer than one frame has room for.
type shell struct {
	header, room int
	rest         []byte
}

func (s *shell) wrap(most int) *gen.Wrap {
	return &gen.Wrap{
		Max: most, One: s.room,
		Put: func(frame, inner []byte) (int, error) {
			s.rest = inner
			return s.next(frame), nil
		},
		Rest: s.next,
		Left: func() int { return (len(s.rest) + s.room - 1) / s.room },
	}
}

func (s *shell) next(frame []byte) int {
	clear(frame[:s.header])
	n := copy(frame[s.header:], s.rest[:min(s.room, len(s.rest))])
	s.rest = s.rest[n:]
	return s.header + n
}

// TestRequesterInOthers: packets of a connection that are put into other frames are kept as they
// went, the longest ones too, and go again so.
func TestRequesterInOthers(t *testing.T) {
	const header, room = 60, 1082
	c := gen.Config{
		Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(room), Fill: gen.FillCount,
		MaxFrame: header + room, Wrap: (&shell{header: header, room: room}).wrap(room),
		RoCE: gen.RoCE{Opcodes: []wire.Opcode{wire.RCSendOnly}, DestQP: 0x11},
	}
	r, err := gen.NewRequester(c, gen.RequesterConfig{QPN: 7, Window: 4, Timeout: 10, Retries: 1})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, c.MaxFrame)
	var went [][]byte
	for n := r.Next(frame, 0, 1); n > 0; n = r.Next(frame, 0, 1) {
		went = append(went, bytes.Clone(frame[:n]))
	}
	if len(went) != 4 || len(went[0]) < c.MaxFrame-3 {
		t.Fatalf("%d packets, the first of %d bytes", len(went), len(went[0]))
	}
	r.Expire(11)
	for i := range went {
		if n := r.Next(frame, 11, 2); !bytes.Equal(frame[:n], went[i]) {
			t.Errorf("packet %d is another one when it goes again", i)
		}
	}
	c.Wrap, c.Sizes = (&shell{header: header, room: 500}).wrap(room), gen.List(600)
	if _, err := gen.NewRequester(c, gen.RequesterConfig{}); !errors.Is(err, gen.ErrConfig) {
		t.Errorf("packets in segments: %v", err)
	}
}

// TestRequesterCountsWhatItMakes: mistakes that are told of were on the wire, whatever others were
// wanted of the same packet, and whether or not there was room for them.
func TestRequesterCountsWhatItMakes(t *testing.T) {
	made := []gen.FaultKind{gen.FaultGap, gen.FaultDuplicate, gen.FaultSwap, gen.FaultBadICRC}
	for kinds := range 1 << len(made) {
		for _, window := range []int{1, 2, 8} {
			c := gen.Config{
				Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(100),
				MaxFrame: maxFrame,
				RoCE:     gen.RoCE{Opcodes: []wire.Opcode{wire.RCSendOnly}, DestQP: 0x11},
			}
			for _, k := range made {
				if kinds>>k&1 != 0 {
					c.Faults = append(c.Faults, gen.Fault{Kind: k, Every: 2 + uint64(k)%2})
				}
			}
			r, err := gen.NewRequester(c, gen.RequesterConfig{
				QPN: 7, Window: window, Timeout: 1 << 40, Retries: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			want := onTheWire(t, r, c.MaxFrame)
			if got := r.Flow().Injected(); got != want {
				t.Errorf("faults %04b, window %d: %v were counted, %v made", kinds, window, got,
					want)
			}
		}
	}
}

// onTheWire has twenty windows sent, each of which is acknowledged as a whole, and counts mistakes.
func onTheWire(t *testing.T, r *gen.Requester, most int) (made [gen.NumFaults]uint64) {
	t.Helper()
	frame := make([]byte, most)
	times := map[wire.PSN]uint64{}
	for range 20 {
		top := wire.PSN(0)
		for idle := 0; idle < 2; {
			before := r.Flow().Signed()
			n := r.Next(frame, 0, 1)
			if n == 0 {
				if r.Flow().Signed() == before {
					idle++
				}
				continue
			}
			var p wire.Packet
			if reason := p.Decode(frame[:n], nil); reason != wire.OK {
				t.Fatal(reason)
			}
			if !p.VerifyICRC() {
				made[gen.FaultBadICRC]++
			}
			psn := p.BTH.PSN
			if times[psn]++; times[psn] > 1 {
				made[gen.FaultDuplicate]++
			} else if psn.Before(top) {
				made[gen.FaultSwap]++
			}
			if psn.After(top) {
				top = psn
			}
		}
		acknowledge(t, r, wire.PSN(r.Flow().Signed()-1), wire.ACKNoCredits)
	}
	made[gen.FaultGap] = r.Flow().Signed() - uint64(len(times))
	return made
}

// TestRequesterDuplicateAnswered: a packet that was to go twice and is answered before it does goes
// once, and is not counted; nor is one that goes again for another reason.
func TestRequesterDuplicateAnswered(t *testing.T) {
	for name, before := range map[string]func(*testing.T, *gen.Requester){
		"answered": func(t *testing.T, r *gen.Requester) {
			acknowledge(t, r, 0, wire.ACKNoCredits)
			acknowledge(t, r, 1, wire.ACKNoCredits)
		},
		"again": func(t *testing.T, r *gen.Requester) {
			acknowledge(t, r, 0, wire.NAKPSNSequenceError)
		},
		"neither": func(*testing.T, *gen.Requester) {},
	} {
		r := requester(t, 8, []gen.Fault{{Kind: gen.FaultDuplicate, Every: 2}}, wire.RCSendOnly)
		frame := make([]byte, maxFrame)
		next := func() (psn wire.PSN) {
			var p wire.Packet
			if reason := p.Decode(frame[:r.Next(frame, 0, 1)], nil); reason != wire.OK {
				t.Fatal(reason)
			}
			return p.BTH.PSN
		}
		if a, b := next(), next(); a != 0 || b != 1 {
			t.Fatalf("PSNs %d, %d", a, b)
		}
		before(t, r) // PSN 1 is still to go for the second time
		want := uint64(0)
		if name == "neither" {
			want = 1
		}
		next()
		if got := r.Flow().Injected()[gen.FaultDuplicate]; got != want {
			t.Errorf("%s: %d duplicates were counted, %d made", name, got, want)
		}
	}
}

// TestRequesterCountsKeys: a wrong key is counted where there is a key, and the packet has it.
func TestRequesterCountsKeys(t *testing.T) {
	r := requester(t, 64, []gen.Fault{
		{Kind: gen.FaultBadKey, Every: 1}, {Kind: gen.FaultOrder, Every: 5},
	}, wire.RCSendOnly, wire.RCWriteOnly)
	frame := make([]byte, maxFrame)
	made := uint64(0)
	for range 30 {
		if wrongKey(t, frame[:r.Next(frame, 0, 1)], 0) {
			made++
		}
	}
	if got := r.Flow().Injected(); got[gen.FaultBadKey] != made || got[gen.FaultOrder] != 6 ||
		made != 12 {
		t.Errorf("%v were counted, %d wrong keys made", got, made)
	}
}

// requester makes one of a window and mistakes.
func requester(t *testing.T, window int, faults []gen.Fault, ops ...wire.Opcode) *gen.Requester {
	t.Helper()
	r, err := gen.NewRequester(gen.Config{
		Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(120), MaxFrame: maxFrame,
		RoCE: gen.RoCE{Opcodes: ops, DestQP: 0x11}, Faults: faults,
	}, gen.RequesterConfig{QPN: 7, Window: window, Timeout: 1 << 40, Retries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// acknowledge has the peer of a requester say something of a PSN.
func acknowledge(t *testing.T, r *gen.Requester, psn wire.PSN, s wire.Syndrome) {
	t.Helper()
	var back wire.Template
	to := path(false, false)
	to.Framing = wire.FramingV2IPv4
	if err := back.Init(to); err != nil {
		t.Fatal(err)
	}
	ack := roctest.Packet{Opcode: wire.RCAck, DestQP: 7, PSN: psn, AETH: wire.AETH{Syndrome: s}}
	var p wire.Packet
	if reason := p.Decode(ack.Frame(&back), nil); reason != wire.OK || !r.Handle(&p, 0) {
		t.Fatal(reason)
	}
}
