package roce_test

import (
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// meets reports whether a QP of a kind in a state takes packets of an opcode, by
// the tables of the architecture, and if not which counter tells of it.
func meets(k kind, state roce.State, op wire.Opcode) (bool, counter.ID) {
	spec := op.Spec()
	receives := state >= roce.StateRTR && state <= roce.StateSQE
	request := spec.Is(wire.ClassRequest)
	switch {
	case !receives || k.typ == roce.TypeRawPacket:
		return false, counter.DropQPState
	case spec.Service != k.service() && !(op == wire.SelectiveAck && k.ext != 0):
		return false, counter.DropWrongService
	case request && k.typ == roce.TypeXRCSend:
		return false, counter.DropWrongService
	case !request && (k.typ == roce.TypeXRCRecv || state == roce.StateRTR):
		return false, counter.DropQPState
	}
	return true, 0
}

// TestHostileOpcodes: every one of the 256 opcodes meets every kind of QP in
// every state. What is not for it leaves no trace but in one counter; nothing
// else does more than it may.
func TestHostileOpcodes(t *testing.T) {
	eachKind(func(k kind, state roce.State) {
		if k.typ == roce.TypeRawPacket {
			return // see TestHostileRawAndRoCEApart: it takes any frame, and no packet
		}
		still := newStand(t, k, state)
		for op := range wire.Opcode(255) {
			oneOpcode(t, still, op)
		}
		oneOpcode(t, still, 0xff)
		still.end()
	})
}

func oneOpcode(t *testing.T, still *stand, op wire.Opcode) {
	t.Helper()
	k, state := still.kind, still.start
	what := fmt.Sprintf("opcode %#x", uint8(op))
	if !op.Spec().Known {
		still.frozen(what, func() {
			if r := still.giveFrame(still.frameOf(op)); r != wire.UnknownOpcode {
				t.Fatalf("%s: decode says %s", what, r)
			}
		})
		return
	}
	takes, id := meets(k, state, op)
	if takes {
		s := newStand(t, k, state)
		for range 2 {
			s.giveFrame(s.frameOf(op))
			s.sendAll()
			s.check()
		}
		if s.count[counter.RcvdPkts] == 0 {
			t.Errorf("%s in %s did not take %s", k.name, state, op)
		}
		s.runOut()
		s.end()
		return
	}
	before := still.count[id]
	still.frozen(what, func() {
		if r := still.giveFrame(still.frameOf(op)); r != wire.OK {
			t.Fatalf("%s: decode says %s", what, r)
		}
	})
	if still.count[id] != before+1 {
		t.Errorf("%s in %s: %s not counted as %s", k.name, state, op, id)
	}
}

// TestHostileRandomHeaders: every opcode with extended headers of noise, where
// the noise is now and then what it takes to get further.
func TestHostileRandomHeaders(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	noise := newNoise(1)
	for _, k := range kinds {
		for _, state := range []roce.State{roce.StateRTR, roce.StateRTS, roce.StateSQD} {
			if !k.reaches(state) {
				continue
			}
			for range rounds {
				s := newStand(t, k, state)
				for range 64 {
					s.giveFrame(s.noisy(noise))
					if noise.IntN(4) == 0 {
						s.sendAll()
					}
					s.check()
				}
				s.runOut()
				s.end()
			}
		}
	}
}

// psnRegion is how far a request lies from the expected PSN and what RC does
// with it (IBA 9.7.4.1.2).
var psnRegions = []struct {
	name    string
	delta   uint32 // modulo 2^24
	counter counter.ID
}{
	{"oldest duplicate", 1 << 23, counter.DuplicateRequest},
	{"older duplicate", 1<<23 + 1, counter.DuplicateRequest},
	{"newest duplicate", 1<<24 - 1, counter.DuplicateRequest},
	{"expected", 0, counter.RDMARecvs},
	{"next", 1, counter.OutOfSequence},
	{"far", 300, counter.OutOfSequence},
	{"farthest", 1<<23 - 1, counter.OutOfSequence},
}

// psnStarts are expected PSNs near all that wraps.
var psnStarts = []wire.PSN{0, 1, 1<<23 - 1, 1 << 23, 1<<23 + 1, 1<<24 - 2, 1<<24 - 1}

// TestHostilePSNOfRequest: the regions of a request's PSN, at their borders, in
// every state.
func TestHostilePSNOfRequest(t *testing.T) {
	eachKind(func(k kind, state roce.State) {
		if k.typ != roce.TypeRC && k.typ != roce.TypeXRCRecv {
			return
		}
		for _, e := range psnStarts {
			for _, tt := range psnRegions {
				s := standAt(t, k, state, e, 0x100)
				p := s.frameOf(wire.RCSendOnly | wire.Opcode(k.service())<<5)
				s.rewrite(p, e.Add(tt.delta))
				if state < roce.StateRTR || state == roce.StateErr {
					s.frozen(tt.name, func() { s.giveFrame(p) })
					continue
				}
				s.giveFrame(p)
				v := s.qp.Snapshot()
				moved := uint32(v.ExpectedPSN.Sub(uint32(e)))
				id := tt.counter
				if k.ext&roce.ExtReorderWindow != 0 && tt.delta == 1 {
					id = counter.HeldEarly
				}
				if s.count[id] != 1 || moved != uint32(b2i(tt.delta == 0)) {
					t.Errorf("%s in %s: %s of %#x: %s %d, moved by %d", k.name, state, tt.name,
						uint32(e), id, s.count[id], moved)
				}
				s.sendAll()
				s.check()
			}
		}
	})
}

// TestHostilePSNOfResponse: the regions of an answer's PSN: what was never
// sent, and what was answered, changes nothing.
func TestHostilePSNOfResponse(t *testing.T) {
	for _, k := range kinds {
		if k.typ != roce.TypeRC && k.typ != roce.TypeXRCSend {
			continue
		}
		for _, u := range psnStarts {
			for _, state := range []roce.State{roce.StateRTS, roce.StateSQD} {
				requesterRegions(t, k, state, u)
			}
		}
	}
}

func requesterRegions(t *testing.T, k kind, state roce.State, u wire.PSN) {
	t.Helper()
	sent := standAt(t, k, state, 0x200, u).qp.Snapshot()
	top := uint32(sent.TopPSN.Sub(uint32(u)))
	for _, op := range []wire.Opcode{
		wire.RCAck, wire.RCAtomicAck, wire.RCReadRespFirst, wire.RCReadRespMiddle,
		wire.RCReadRespLast, wire.RCReadRespOnly,
	} {
		op |= wire.Opcode(k.service()) << 5
		s := standAt(t, k, state, 0x200, u)
		for _, tt := range []struct {
			delta uint32
			id    counter.ID
		}{
			{top, counter.DropFutureResponse},
			{top + 1, counter.DropFutureResponse},
			{1<<23 - 1, counter.DropFutureResponse},
			{1 << 23, counter.DropGhostResponse},
			{1<<24 - 2, counter.DropGhostResponse},
		} {
			before := s.count[tt.id]
			s.frozen(fmt.Sprintf("%s at %#x+%#x", op, uint32(u), tt.delta), func() {
				p := s.frameOf(op)
				s.rewrite(p, u.Add(tt.delta))
				s.giveFrame(p)
			})
			if s.count[tt.id] != before+1 {
				t.Errorf("%s: %s at una+%#x not counted as %s", k.name, op, tt.delta, tt.id)
			}
		}
	}
	// The last PSN that was sent is one to answer; so is the first.
	for _, delta := range []uint32{0, top - 1} {
		s := standAt(t, k, state, 0x200, u)
		p := s.frameOf(wire.RCAck | wire.Opcode(k.service())<<5)
		s.rewrite(p, u.Add(delta))
		s.giveFrame(p)
		if s.qp.Snapshot().UnackedPSN == u {
			t.Errorf("%s: ACK of una+%d did nothing", k.name, delta)
		}
		s.sendAll()
		s.check()
	}
}
