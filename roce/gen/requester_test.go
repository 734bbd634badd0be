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
	var back wire.Template
	to := path(false, false)
	to.Framing = wire.FramingV2IPv4
	if err := back.Init(to); err != nil {
		t.Fatal(err)
	}
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
		ack := roctest.Packet{
			Opcode: wire.RCAck, DestQP: 7, PSN: wire.PSN(r.Flow().Signed() - 1),
			AETH: wire.AETH{Syndrome: wire.ACKNoCredits},
		}
		var p wire.Packet
		if reason := p.Decode(ack.Frame(&back), nil); reason != wire.OK || !r.Handle(&p, 0) {
			t.Fatal(reason)
		}
	}
	made[gen.FaultGap] = r.Flow().Signed() - uint64(len(times))
	return made
}
