package roce_test

import (
	"bytes"
	"fmt"
	"math/big"
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A reach is how a peer reaches for memory.
type reach struct {
	op   wire.Opcode
	need mem.Access
	size int // of what it moves, 0 for any
}

var reaches = []reach{
	{wire.RCWriteOnly, mem.RemoteWrite, 0},
	{wire.RCWriteFirst, mem.RemoteWrite, 0},
	{wire.RCWriteOnlyImm, mem.RemoteWrite, 0},
	{wire.RCReadRequest, mem.RemoteRead, 0},
	{wire.RCFetchAdd, mem.RemoteAtomic, 8},
	{wire.RCCmpSwap, mem.RemoteAtomic, 8},
	{wire.RCAtomicWrite, mem.RemoteWrite, 8},
	{wire.RCFlush, mem.FlushGlobal, 0},
}

// frame is a frame that reaches for n bytes at va with a key, as far as the
// service of the QP has the operation.
func (r *reach) frame(s *stand, key uint32, va uint64, n uint32) (frame []byte, ok bool) {
	op, ok := s.kind.opcode(r.op)
	if !ok {
		return nil, false
	}
	p := s.target(op)
	p.RETH = wire.RETH{VA: va, RKey: key, DMALen: n}
	p.Atomic.VA, p.Atomic.RKey = va, key
	switch {
	case op.Spec().Payload == wire.PayloadAny:
		p.Payload = bytes.Repeat([]byte{0x77}, int(min(n, 256)))
	case r.size == 8 && len(p.Payload) == 8:
		copy(p.Payload, "ATOMICWR")
	case len(p.Payload) > 0:
		p.Payload = bytes.Repeat([]byte{0x77}, len(p.Payload))
	}
	return s.service(p.Frame(&s.path), op.Spec()), true
}

// legal reports whether the lengths of such a frame fit together.
func (r *reach) legal(n uint32) bool {
	switch {
	case n > roce.MaxMessage:
		return false
	case r.op == wire.RCWriteOnly || r.op == wire.RCWriteOnlyImm:
		return n <= 256
	case r.op == wire.RCWriteFirst:
		return n > 256
	}
	return true
}

// granted gives a fresh stand the frame and wants it executed, or refused with
// memory as it was.
func granted(t *testing.T, s *stand, frame []byte, want bool, what string) {
	t.Helper()
	memory := bytes.Clone(s.bytes)
	s.giveFrame(frame)
	s.sendAll()
	s.check()
	done := s.qp.Snapshot().ExpectedPSN != 0x200
	if s.kind.typ == roce.TypeUC {
		done = s.count[counter.DropRefused] == 0
	}
	if done != want {
		t.Fatalf("%s: %s: executed %t, want %t", s.kind.name, what, done, want)
	}
	if !want && !bytes.Equal(memory, s.bytes) {
		t.Fatalf("%s: %s: refused, but memory was changed", s.kind.name, what)
	}
}

// TestHostileBounds: every way to reach for memory, at one byte around both ends
// of a region and for one byte more or less than there is.
func TestHostileBounds(t *testing.T) {
	for _, k := range []kind{kinds[0], kinds[4], kinds[11]} {
		for _, r := range reaches {
			if _, ok := k.opcode(r.op); !ok {
				continue
			}
			sizes := []int64{1, 2, 255, 256, 257, standArea - 1, standArea, standArea + 1}
			if r.size != 0 {
				sizes = []int64{int64(r.size)}
			}
			for _, n := range sizes {
				for _, at := range []int64{
					-9, -8, -n - 1, -n, -n + 1, -1, 0, 1, standArea - n - 8, standArea - n - 1,
					standArea - n, standArea - n + 1, standArea - n + 8, standArea - 1, standArea,
					standArea + 1,
				} {
					if !r.legal(uint32(n)) || r.size != 0 && at%8 != 0 {
						continue
					}
					s := newStand(t, k, roce.StateRTR)
					open := s.areas[areaOpen]
					frame, _ := r.frame(s, open.RKey(), open.Addr()+uint64(at), uint32(n))
					granted(t, s, frame, at >= 0 && at+n <= standArea,
						fmt.Sprintf("%s of %d at %+d", r.op, n, at))
				}
			}
		}
	}
}

// TestHostileAddressArithmetic: addresses and lengths at which sums wrap,
// against regions that lie there, through whole packets. The oracle does not
// wrap.
func TestHostileAddressArithmetic(t *testing.T) {
	const size = 1 << 10
	lengths := []uint32{0, 1, 8, 256, 257, size, size + 1, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1}
	for _, base := range []uint64{
		0, 8, 1<<31 - size, 1 << 31, 1<<32 - 8, 1 << 32, 1<<63 - size/2, 1 << 63, 1<<64 - size - 8,
		1<<64 - size - 1,
	} {
		for _, r := range reaches {
			for _, va := range append([]uint64{
				base - 8, base - 1, base, base + 1, base + 8, base + size - 8, base + size - 1,
				base + size, base + size + 8,
			}, corners...) {
				for _, n := range lengths {
					if r.size != 0 && int(n) != r.size || r.size != 0 && va%8 != 0 {
						continue
					}
					arithmetic(t, r, base, size, va, n)
				}
			}
		}
	}
}

// arithmetic gives one request to a QP with one region.
func arithmetic(t *testing.T, r reach, base uint64, size int, va uint64, n uint32) {
	t.Helper()
	s := newStand(t, kinds[0], roce.StateRTR)
	if r.size != 0 && base%8 != 0 {
		return // address and memory disagree about alignment
	}
	region, err := s.keys.RegisterAt(s.own, s.area(areaOpen)[:size:size], base, everyRight)
	must(t, err)
	from, to := new(big.Int).SetUint64(va), new(big.Int).SetUint64(va)
	to.Add(to, new(big.Int).SetUint64(uint64(n)))
	low, high := new(big.Int).SetUint64(base), new(big.Int).SetUint64(base)
	high.Add(high, big.NewInt(int64(size)))
	inside := from.Cmp(low) >= 0 && to.Cmp(high) <= 0
	if n == 0 && r.op != wire.RCFlush {
		inside = true // a range of nothing is not looked at (IBA C9-88)
	}
	frame, _ := r.frame(s, region.RKey(), va, n)
	granted(t, s, frame, inside && r.legal(n),
		fmt.Sprintf("%s of %d at %#x, region at %#x", r.op, n, va, base))
}

// TestHostileZeroLength: a WRITE or READ of nothing needs no key and touches
// nothing; atomics, ATOMIC WRITE and FLUSH have no such exception.
func TestHostileZeroLength(t *testing.T) {
	for _, k := range []kind{kinds[0], kinds[1], kinds[3], kinds[4], kinds[11]} {
		for _, r := range reaches {
			for _, key := range []string{"none", "foreign", "read-only", "local", "gone", "right"} {
				if _, ok := k.opcode(r.op); !ok || r.op == wire.RCWriteFirst {
					continue
				}
				s := newStand(t, k, roce.StateRTR)
				open := s.areas[areaOpen]
				if key == "gone" {
					s.keys.Deregister(open)
				}
				rkey := map[string]uint32{
					"none": 0, "foreign": s.areas[areaForeign].RKey(), "right": open.RKey(),
					"read-only": s.areas[areaReadOnly].RKey(), "gone": open.RKey(),
					"local": s.areas[areaLocal].RKey(),
				}[key]
				frame, _ := r.frame(s, rkey, open.Addr()+standArea, uint32(r.size))
				// At the end of the region nothing is inside, and something is not.
				want := r.size == 0 && (r.op != wire.RCFlush || key == "right")
				memory := bytes.Clone(s.bytes)
				granted(t, s, frame, want, fmt.Sprintf("%s of %d, key %s", r.op, r.size, key))
				if !bytes.Equal(memory, s.bytes) {
					t.Errorf("%s: %s of nothing wrote memory", k.name, r.op)
				}
			}
		}
	}
}

// TestHostileDomains: every key against every kind of QP that has remote memory,
// in every domain: whether it is granted follows from the rights, the domain and
// the rights of the QP alone.
func TestHostileDomains(t *testing.T) {
	rights := []mem.Access{
		0, mem.LocalWrite, mem.LocalWrite | mem.RemoteWrite, mem.RemoteRead,
		mem.LocalWrite | mem.RemoteAtomic, mem.FlushGlobal, everyRight,
	}
	for _, k := range []kind{kinds[0], kinds[2], kinds[3], kinds[4], kinds[5], kinds[11]} {
		for _, r := range reaches {
			if _, ok := k.opcode(r.op); !ok {
				continue
			}
			for _, access := range rights {
				for _, foreign := range []bool{false, true} {
					s := newStand(t, k, roce.StateRTR)
					domain := s.own
					if foreign {
						domain = s.other
					}
					region, err := s.keys.RegisterAt(domain, s.area(areaOpen), 0, access)
					must(t, err)
					n := uint32(16)
					switch {
					case r.size != 0:
						n = uint32(r.size)
					case r.op == wire.RCWriteFirst:
						n = 300
					}
					frame, _ := r.frame(s, region.RKey(), 0, n)
					granted(t, s, frame, !foreign && access&r.need == r.need,
						fmt.Sprintf("%s with %s, foreign %t", r.op, access, foreign))
				}
			}
		}
	}
}

// TestHostileInvalidate: SEND with invalidate takes only keys of the QP's own
// domain that allow it, and only once.
func TestHostileInvalidate(t *testing.T) {
	for _, k := range []kind{kinds[0], kinds[3], kinds[11]} {
		for area := range areaCount {
			s := newStand(t, k, roce.StateRTR)
			op, _ := k.opcode(wire.RCSendOnlyInv)
			p := s.target(op)
			p.IETH = s.areas[area].RKey()
			s.giveFrame(s.service(p.Frame(&s.path), op.Spec()))
			s.sendAll()
			s.check()
			want := area == areaRevoke
			if s.areas[area].Valid() == want || s.qp.State() == roce.StateErr == want {
				t.Errorf("%s: area %d valid %t, QP in %s", k.name, area, s.areas[area].Valid(),
					s.qp.State())
			}
		}
	}
}

// TestHostileLocalKeys: each way in which a local key may be wrong, in a request
// and in a receive, for every kind of QP. Nothing is sent or placed, and the
// request at fault says why.
func TestHostileLocalKeys(t *testing.T) {
	wrong := map[string]func(s *stand, e *roce.SGE){
		"no key":       func(_ *stand, e *roce.SGE) { e.LKey = 0 },
		"variant":      func(_ *stand, e *roce.SGE) { e.LKey++ },
		"index":        func(_ *stand, e *roce.SGE) { e.LKey += 1 << 8 },
		"other domain": func(s *stand, e *roce.SGE) { *e = s.sge(areaForeign, 0, 60) },
		"one beyond":   func(s *stand, e *roce.SGE) { *e = s.sge(areaOpen, standArea-59, 60) },
		"one before":   func(_ *stand, e *roce.SGE) { e.Addr-- },
		"far":          func(_ *stand, e *roce.SGE) { e.Addr = 1<<64 - 1 },
		"gone":         func(s *stand, _ *roce.SGE) { s.keys.Deregister(s.areas[areaOpen]) },
		"invalidated": func(s *stand, e *roce.SGE) {
			*e = s.sge(areaRevoke, 0, 60)
			s.keys.Invalidate(s.own.Local(), e.LKey)
		},
		"read-only": func(s *stand, e *roce.SGE) { *e = s.sge(areaReadOnly, 0, 60) },
	}
	for name, spoil := range wrong {
		for _, k := range kinds {
			localSend(t, k, name, spoil)
			localRecv(t, k, name, spoil)
		}
	}
}

// sge names n bytes of an area.
func (s *stand) sge(area, off, n int) roce.SGE {
	r := s.areas[area]
	return roce.SGE{Addr: r.Addr() + uint64(off), Length: uint32(n), LKey: r.LKey()}
}

func localSend(t *testing.T, k kind, name string, spoil func(*stand, *roce.SGE)) {
	t.Helper()
	if k.typ == roce.TypeXRCRecv {
		return
	}
	for op := range roce.Opcode(16) {
		s := bareStand(t, k)
		s.moveUp(roce.StateRTS)
		n := 60
		if op == roce.OpFetchAdd || op == roce.OpCmpSwap || op == roce.OpAtomicWrite {
			n = 8
		}
		wr := s.request(op, areaOpen, 0, n)
		if wr.SGList == nil {
			continue
		}
		spoil(s, &wr.SGList[0])
		wr.SGList[0].Length = uint32(n)
		if name == "one beyond" {
			wr.SGList[0].Addr = s.areas[areaOpen].Addr() + uint64(standArea-n+1)
		}
		writes := op == roce.OpRead || op == roce.OpFetchAdd || op == roce.OpCmpSwap
		if name == "read-only" && !writes || !s.post(&wr) {
			continue // the peer's data may come from there; or the QP has no such thing
		}
		if sent := s.sendAll(); len(sent) != 0 || s.statuses[roce.StatusLocProtErr] != 1 {
			t.Errorf("%s: %s with key %s: %d packets, %v", k.name, op, name, len(sent), s.statuses)
		}
		s.check()
	}
}

func localRecv(t *testing.T, k kind, name string, spoil func(*stand, *roce.SGE)) {
	t.Helper()
	op, ok := k.opcode(wire.RCSendOnly)
	if k.typ == roce.TypeXRCSend || !ok {
		return
	}
	s := bareStand(t, k)
	s.moveUp(roce.StateRTR)
	piece := s.sge(areaOpen, 0, 60)
	spoil(s, &piece)
	wr := roce.RecvWR{WRID: s.recvPosted, SGList: []roce.SGE{piece}}
	if s.srq != nil {
		must(t, s.srq.PostRecv(&wr))
	} else {
		must(t, s.qp.PostRecv(&wr))
	}
	s.recvPosted++
	memory := bytes.Clone(s.bytes)
	switch {
	case k.datagram():
		s.giveLong(op, 20)
	case k.typ == roce.TypeRawPacket:
		s.giveFrame(bytes.Repeat([]byte{0x5a}, 60))
	default:
		s.giveLong(op, 60)
	}
	s.sendAll()
	s.check()
	if s.statuses[roce.StatusLocProtErr] != 1 || s.qp.State() != roce.StateErr ||
		!bytes.Equal(memory, s.bytes) && !(k.datagram() && name == "one beyond") {
		// Only the addresses in front of a datagram may lie inside, and be there.
		t.Errorf("%s: receive with key %s: %v, QP in %s", k.name, name, s.statuses, s.qp.State())
	}
}
