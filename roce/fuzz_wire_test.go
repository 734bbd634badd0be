package roce_test

import (
	"bytes"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// A duel is two connected queue pairs whose wire belongs to a fuzzer.
type duel struct {
	ends [2]*stand
	air  [2][][]byte // frames on their way to each end
	evil bool        // somebody made an ICRC right that was wrong, or took memory away
}

// maxAir is how many frames the wire keeps in each direction.
const maxAir = 200

// FuzzWire gives two queue pairs that work for each other a wire that loses,
// repeats, reorders and damages what the fuzzer wants it to. Then the wire is
// whole again, and all work ends.
func FuzzWire(f *testing.F) {
	f.Fuzz(func(t *testing.T, in byte, data []byte) {
		near := []kind{kinds[0], kinds[1], kinds[2], kinds[4], kinds[3]}[int(in)%5]
		far := near
		far.far, far.psn = true, &[2]wire.PSN{0x100, 0x200}
		d := &duel{ends: [2]*stand{bareStand(t, near), bareStand(t, far)}}
		for _, s := range d.ends {
			s.start = roce.StateRTS
			s.moveUp(roce.StateRTS)
		}
		play := &tape{data}
		for steps := 0; len(play.data) > 0 && steps < maxSteps; steps++ {
			d.act(play)
			d.ends[0].check()
			d.ends[1].check()
		}
		d.heal(t)
	})
}

// act does one thing that a tape asks for.
func (d *duel) act(play *tape) {
	to := play.IntN(2)
	s, air := d.ends[to], &d.air[to]
	switch play.IntN(12) {
	default:
		d.pump(1-to, 1+play.IntN(4))
		d.deliver(to, 0)
	case 0, 1:
		op := roce.Opcode(play.IntN(16))
		wr := s.request(op, areaOpen, 8*play.IntN(64), []int{8, 0, 1, 256, 257, 1500}[play.IntN(6)])
		goal := d.ends[1-to].areas[areaOpen]
		wr.RemoteAddr, wr.RKey = goal.Addr()+8*uint64(play.IntN(64)), goal.RKey()
		wr.InvalidateKey = d.ends[1-to].areas[areaRevoke].RKey()
		wr.Flags = roce.SendFlags(play.IntN(8))
		s.post(&wr)
	case 2:
		s.postRecv(areaOpen, play.IntN(64), 1600)
	case 3:
		d.deliver(to, play.IntN(8))
	case 4:
		d.take(to, play.IntN(8))
	case 5:
		if f := d.take(to, play.IntN(8)); f != nil {
			*air = append(*air, f, bytes.Clone(f))
		}
	case 6, 7:
		if f := d.take(to, play.IntN(8)); f != nil {
			at := frameBTH + play.IntN(len(f)-frameBTH)
			f[at] ^= 1 << play.IntN(8)
			if play.IntN(4) == 0 {
				d.evil = true
				s.path.Seal(f, len(f)-frameBTH-wire.ICRCLen, 1)
			}
			*air = append([][]byte{f}, *air...)
		}
	case 8:
		s.tick()
	case 9:
		d.evil = true
		s.revoke(play)
	}
}

// pump lets an end send up to n frames.
func (d *duel) pump(from, n int) {
	s, air := d.ends[from], &d.air[1-from]
	for range n {
		if len(*air) == maxAir {
			return
		}
		size := s.qp.NextPacket(s.now, s.frame)
		if size == 0 {
			return
		}
		*air = append(*air, bytes.Clone(s.frame[:size]))
	}
}

// take takes the i-th frame off the wire, nil when there is none.
func (d *duel) take(to, i int) []byte {
	air := d.air[to]
	if i >= len(air) {
		return nil
	}
	f := air[i]
	d.air[to] = append(air[:i:i], air[i+1:]...)
	return f
}

func (d *duel) deliver(to, i int) {
	if f := d.take(to, i); f != nil {
		d.ends[to].giveFrame(f)
	}
}

// heal lets everything arrive until nothing is left to happen.
func (d *duel) heal(t *testing.T) {
	t.Helper()
	for range 20_000 {
		for to := range d.ends {
			d.pump(1-to, maxAir)
			for len(d.air[to]) > 0 {
				d.deliver(to, 0)
			}
			d.ends[to].check()
		}
		d.pump(0, 1)
		d.pump(1, 1)
		if len(d.air[0])+len(d.air[1]) > 0 {
			continue
		}
		if a, b := d.ends[0].tick(), d.ends[1].tick(); !a && !b {
			d.judge(t)
			return
		}
	}
	t.Fatalf("no end: %+v, %+v", d.ends[0].qp.Snapshot(), d.ends[1].qp.Snapshot())
}

// judge wants all work done, and by an honest wire only such failures as loss
// explains.
func (d *duel) judge(t *testing.T) {
	t.Helper()
	for i, s := range d.ends {
		s.check()
		if s.sendDone != s.sendPosted {
			t.Fatalf("end %d: %d of %d requests completed: %+v", i, s.sendDone, s.sendPosted,
				s.qp.Snapshot())
		}
		s.end()
		if d.evil {
			continue
		}
		for _, bad := range []roce.Status{
			roce.StatusBadRespErr, roce.StatusLocProtErr, roce.StatusRemOpErr,
			roce.StatusLocLenErr, roce.StatusGeneralErr,
		} {
			if s.statuses[bad] > 0 {
				t.Fatalf("end %d: %s on an honest wire", i, bad)
			}
		}
	}
}
