package roce_test

import (
	"bytes"
	"testing"
	"time"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A forgery is a packet with the right QPN and PSN, a right key and a right ICRC,
// that somebody else sent.
type forgery struct {
	name    string
	counter counter.ID
	path    func(p *wire.Path)
	packet  func(p *roctest.Packet, k kind)
}

var forgeries = []forgery{
	{"source address", counter.DropBadSource, func(p *wire.Path) { p.Src[15] ^= 1 }, nil},
	{"far source", counter.DropBadSource, func(p *wire.Path) { p.Src[12] ^= 0x80 }, nil},
	{"destination address", counter.DropBadSource, func(p *wire.Path) { p.Dst[15] ^= 1 }, nil},
	{"reflected", counter.DropBadSource, func(p *wire.Path) { p.Src, p.Dst = p.Dst, p.Src }, nil},
	{"RoCE v1 of the same GIDs", counter.DropBadSource, func(p *wire.Path) {
		p.Framing = wire.FramingV1
	}, nil},
	{"IPv6", counter.DropBadSource, func(p *wire.Path) {
		p.Framing, p.Src, p.Dst = wire.FramingV2IPv6, wire.GID{0xfd, 15: 2}, wire.GID{0xfd, 15: 1}
	}, nil},
	{"P_Key", counter.DropBadPKey, nil, func(p *roctest.Packet, _ kind) { p.PKey = 0x1234 }},
	{"P_Key of no partition", counter.DropBadPKey, nil, func(p *roctest.Packet, _ kind) {
		p.PKey = 0x8000
	}},
	{"service", counter.DropWrongService, nil, func(p *roctest.Packet, k kind) {
		p.Opcode = wire.RCSendOnly
		if k.service() == wire.ServiceRC {
			p.Opcode = wire.UCSendOnly
		}
	}},
	{"CNP", counter.DropWrongService, nil, func(p *roctest.Packet, _ kind) {
		p.Opcode, p.Payload = wire.CNP, make([]byte, 16)
	}},
	{"ICRC", counter.DropBadICRC, nil, func(p *roctest.Packet, _ kind) { p.BadICRC = true }},
}

// TestHostileSpoofedPackets: 10^5 forged packets of every sort and opcode, which
// would be executed if the right peer had sent them: no state changes, nothing is
// answered, each is counted under its name.
func TestHostileSpoofedPackets(t *testing.T) {
	packets := 100_000
	if testing.Short() {
		packets = 5_000
	}
	sent := 0
	for _, k := range kinds {
		if !k.connected() || k.typ == roce.TypeRawPacket {
			continue
		}
		for _, state := range []roce.State{roce.StateRTR, roce.StateRTS, roce.StateSQD} {
			sent += spoofed(t, k, state, packets/20)
		}
	}
	if sent < packets {
		t.Errorf("only %d packets", sent)
	}
	t.Logf("%d packets", sent)
}

func spoofed(t *testing.T, k kind, state roce.State, packets int) (sent int) {
	t.Helper()
	if !k.reaches(state) {
		return 0
	}
	s := newStand(t, k, state)
	var frames [][]byte
	var ids []counter.ID
	for op := range wire.Opcodes() {
		if takes, _ := meets(k, state, op); !takes {
			continue
		}
		for _, f := range forgeries {
			p := s.target(op)
			path := pathTo(qpnA, wire.FramingV2IPv4)
			if f.path != nil {
				f.path(&path)
			}
			if f.packet != nil {
				f.packet(&p, k)
			}
			var forged wire.Template
			must(t, forged.Init(path))
			frame := p.Frame(&forged)
			if !p.BadICRC && p.Opcode.Spec().Service == k.service() {
				right := s.path
				s.path = forged
				frame = s.service(frame, p.Opcode.Spec())
				s.path = right
			}
			frames, ids = append(frames, frame), append(ids, f.counter)
		}
	}
	if len(frames) == 0 {
		return 0 // an initiator in RTR takes nothing at all
	}
	want := s.count
	s.frozen("forged packets", func() {
		for ; sent < packets || sent < len(frames); sent++ {
			if r := s.giveFrame(frames[sent%len(frames)]); r != wire.OK {
				t.Fatalf("a forged packet is %s", r)
			}
			want.Inc(ids[sent%len(frames)])
		}
	})
	if s.count != want {
		for id := range counter.Count {
			if s.count[id] != want[id] {
				t.Errorf("%s in %s: %s is %d, want %d", k.name, state, id, s.count[id], want[id])
			}
		}
	}
	s.end()
	return sent
}

// TestHostileWrongKey: a request with a wrong key from the right address ends the
// connection only if it has exactly the expected PSN; the same with any other is
// at most a gap.
func TestHostileWrongKey(t *testing.T) {
	for _, delta := range []uint32{1, 2, 100, 1<<23 - 1, 1 << 23, 1<<24 - 1} {
		for _, op := range []wire.Opcode{
			wire.RCWriteOnly, wire.RCReadRequest, wire.RCFetchAdd, wire.RCFlush,
			wire.RCAtomicWrite, wire.RCSendOnlyInv, wire.RCSendMiddle,
		} {
			s := newStand(t, kinds[0], roce.StateRTS)
			p := s.target(op)
			p.PSN = p.PSN.Add(delta)
			p.RETH.RKey, p.Atomic.RKey, p.IETH = 1, 1, 1
			memory := bytes.Clone(s.bytes)
			s.giveFrame(s.service(p.Frame(&s.path), op.Spec()))
			s.sendAll()
			s.check()
			if s.qp.State() != roce.StateRTS || !bytes.Equal(memory, s.bytes) ||
				s.qp.Snapshot().ExpectedPSN != 0x200 {
				t.Errorf("%s at +%#x: QP in %s", op, delta, s.qp.State())
			}
		}
	}
}

// TestHostileCounters: each kind of attack moves a counter of its own, and no
// other counter of a refusal.
func TestHostileCounters(t *testing.T) {
	last := func(s *stand) string { return s.qp.Snapshot().LastDrop.String() }
	for _, tt := range []struct {
		attack string
		state  roce.State
		id     counter.ID
		step   string
		spoil  func(s *stand, p *roctest.Packet)
	}{
		{"dead QP", roce.StateErr, counter.DropQPState, "qp_state", nil},
		{"no connection", roce.StateInit, counter.DropQPState, "qp_state", nil},
		{
			"duplicate", roce.StateRTS, counter.DuplicateRequest, "admitted",
			func(_ *stand, p *roctest.Packet) { p.PSN = p.PSN.Sub(1) },
		},
		{
			"old READ", roce.StateRTS, counter.DropUnmatchedDuplicate, "replay",
			func(s *stand, p *roctest.Packet) {
				*p = s.target(wire.RCReadRequest)
				p.PSN = p.PSN.Sub(9)
			},
		},
		{
			"gap", roce.StateRTS, counter.OutOfSequence, "psn_gap",
			func(_ *stand, p *roctest.Packet) { p.PSN = p.PSN.Add(1) },
		},
		{
			"answer to nothing", roce.StateRTS, counter.DropFutureResponse, "future_response",
			func(s *stand, p *roctest.Packet) {
				*p = s.target(wire.RCAck)
				p.PSN = s.qp.Snapshot().TopPSN
			},
		},
		{
			"answer of old", roce.StateRTS, counter.DropGhostResponse, "ghost_response",
			func(s *stand, p *roctest.Packet) {
				*p = s.target(wire.RCAck)
				p.PSN = p.PSN.Sub(1)
			},
		},
		{
			"answer of another sort", roce.StateRTS, counter.BadResponse, "response_order",
			func(s *stand, p *roctest.Packet) { *p = s.target(wire.RCAtomicAck) },
		},
		{
			"wrong order", roce.StateRTS, counter.SentFatalNAK, "opcode_sequence",
			func(s *stand, p *roctest.Packet) { *p = s.target(wire.RCSendLast) },
		},
		{
			"wrong key", roce.StateRTS, counter.SentFatalNAK, "rkey",
			func(_ *stand, p *roctest.Packet) { p.RETH.RKey ^= 1 },
		},
		{
			"wrong range", roce.StateRTS, counter.SentFatalNAK, "rkey",
			func(_ *stand, p *roctest.Packet) { p.RETH.VA-- },
		},
		{
			"wrong length", roce.StateRTS, counter.SentFatalNAK, "length",
			func(_ *stand, p *roctest.Packet) { p.RETH.DMALen++ },
		},
		{
			"too long", roce.StateRTS, counter.SentFatalNAK, "length",
			func(_ *stand, p *roctest.Packet) { p.RETH.DMALen = 1<<31 + 1 },
		},
		{
			"misaligned", roce.StateRTS, counter.SentFatalNAK, "alignment",
			func(s *stand, p *roctest.Packet) {
				*p = s.target(wire.RCFetchAdd)
				p.Atomic.VA++
			},
		},
		{
			"too long a SEND", roce.StateRTS, counter.SentFatalNAK, "receive_length",
			func(s *stand, p *roctest.Packet) {
				s.givePacket(s.target(wire.RCSendFirst))
				*p = s.target(wire.RCSendLast)
				p.Payload = make([]byte, 250)
			},
		},
	} {
		s := newStand(t, kinds[0], tt.state)
		p := s.target(wire.RCWriteOnly)
		if tt.spoil != nil {
			tt.spoil(s, &p)
		}
		before := s.count[tt.id]
		s.givePacket(p)
		if s.count[tt.id] != before+1 || last(s) != tt.step {
			t.Errorf("%s: %s moved by %d, step %s, want %s", tt.attack, tt.id,
				s.count[tt.id]-before, last(s), tt.step)
		}
	}
	for _, k := range []kind{kinds[6], kinds[8]} {
		s := newStand(t, k, roce.StateRTR)
		p := s.target(wire.UDSendOnly)
		s.frozen("a wrong Q_Key", func() { s.givePacket(p) })
		if s.count[counter.DropBadQKey] != 1 || last(s) != "qkey" {
			t.Errorf("%s: a wrong Q_Key is not counted: %s", k.name, last(s))
		}
	}
}

// TestHostileRawAndRoCEApart: a raw QP is given no RoCE packet, and no other QP
// a raw frame: each kind refuses what is the other's, without a trace.
func TestHostileRawAndRoCEApart(t *testing.T) {
	for _, state := range everyState {
		raw := kinds[9]
		if !raw.reaches(state) {
			continue
		}
		s := newStand(t, raw, state)
		for op := range wire.Opcodes() {
			before := s.count[counter.DropQPState]
			s.frozen(op.String(), func() {
				frame := s.frameOf(op)
				if r := s.packet.Decode(frame, nil); r != wire.OK {
					t.Fatalf("%s: %s", op, r)
				}
				s.qp.HandlePacket(s.now, &s.packet)
			})
			if s.count[counter.DropQPState] != before+1 {
				t.Errorf("%s for a raw QP is not counted", op)
			}
		}
		s.end()
	}
	eachKind(func(k kind, state roce.State) {
		if k.typ == roce.TypeRawPacket {
			return
		}
		s := newStand(t, k, state)
		s.frozen("a raw frame", func() {
			if s.qp.HandleFrame(0, s.frameOf(wire.RCSendOnly), nil) == nil {
				t.Errorf("%s took a raw frame", k.name)
			}
		})
	})
}

// TestHostileRawFrameLengths: a raw QP takes frames of any length in any two
// pieces, and never more than its receive has room for.
func TestHostileRawFrameLengths(t *testing.T) {
	for n := range 500 {
		for _, cut := range []int{0, n / 2, n} {
			s := newStand(t, kinds[9], roce.StateRTR)
			frame := bytes.Repeat([]byte{0x5a}, n)
			must(t, s.qp.HandleFrame(0, frame[:cut], frame[cut:]))
			s.check()
			if fits := n <= 400; s.recvDone != uint64(b2i(fits)) ||
				s.count[counter.DropTooLong] != uint64(b2i(!fits)) {
				t.Errorf("frame of %d: %d receives done", n, s.recvDone)
			}
		}
	}
}

// garbage are frames that cost an attacker nothing, with the frame of valid
// traffic that they are compared with.
func garbage(s *stand) (valid []byte, bad map[string][]byte) {
	valid = s.frameOf(wire.RCWriteOnly)
	forged := func(change func(p *roctest.Packet)) []byte {
		p := s.target(wire.RCWriteOnly)
		change(&p)
		return p.Frame(&s.path)
	}
	stranger := s.path
	path := pathTo(qpnA, wire.FramingV2IPv4)
	path.Src[15] ^= 7
	must(s.tb, stranger.Init(path))
	p := s.target(wire.RCWriteOnly)
	short := bytes.Clone(valid[:len(valid)-3])
	noRoCE := bytes.Clone(valid)
	noRoCE[frameUDP+2] ^= 1
	unknown := bytes.Clone(valid)
	unknown[frameBTH] = 0xff
	sum := bytes.Clone(valid)
	sum[frameIP+10] ^= 1
	return valid, map[string][]byte{
		"stranger": p.Frame(&stranger), "truncated": short, "not RoCE": noRoCE,
		"unknown opcode": unknown, "IP checksum": sum, "bad ICRC": forged(func(p *roctest.Packet) {
			p.BadICRC = true
		}), "P_Key": forged(func(p *roctest.Packet) { p.PKey = 1 }),
		"future": forged(func(p *roctest.Packet) { p.PSN = p.PSN.Add(1 << 20) }),
		"noise":  bytes.Repeat([]byte{0xa5}, len(valid)), "empty": {},
	}
}

// garbageRounds is how many packets each measurement of garbage is of.
const garbageRounds = 2000

// TestHostileGarbage: garbage takes no memory, and not much more time than a
// packet of a WRITE. The machine is shared: the bound is generous, and one quiet
// moment in several is enough.
func TestHostileGarbage(t *testing.T) {
	s := newStand(t, kinds[0], roce.StateRTR)
	valid, bad := garbage(s)
	for name, frame := range bad {
		if n := testing.AllocsPerRun(200, func() {
			s.giveFrame(frame)
			s.qp.NextPacket(s.now, s.frame)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	for name, frame := range bad {
		var right, wrong time.Duration
		for attempt := 0; ; attempt++ {
			right, wrong = s.timeValid(valid), s.timeGarbage(frame)
			if wrong <= 2*right {
				break
			}
			if attempt == 20 {
				t.Errorf("%s takes %s, a valid packet %s", name, wrong, right)
				break
			}
		}
		t.Logf("%s takes %s, a valid packet %s", name, wrong, right)
	}
	if s.qp.State() != roce.StateRTR {
		t.Errorf("the QP is in %s", s.qp.State())
	}
}

// timeGarbage is what a packet of garbage takes.
func (s *stand) timeGarbage(frame []byte) time.Duration {
	start := time.Now()
	for range garbageRounds {
		s.giveFrame(frame)
		s.qp.NextPacket(s.now, s.frame)
	}
	return time.Since(start) / garbageRounds
}

// timeValid is what a valid packet takes. They must be new ones: each moves the
// PSN.
func (s *stand) timeValid(valid []byte) time.Duration {
	s.tb.Helper()
	frames := make([][]byte, garbageRounds)
	before := s.qp.Snapshot()
	for i := range frames {
		frames[i] = bytes.Clone(valid)
		s.rewrite(frames[i], before.ExpectedPSN.Add(uint32(i)))
	}
	start := time.Now()
	for _, f := range frames {
		s.giveFrame(f)
		s.qp.NextPacket(s.now, s.frame)
	}
	took := time.Since(start) / garbageRounds
	if after := s.qp.Snapshot(); after.MSN-before.MSN != garbageRounds {
		s.tb.Fatalf("valid traffic: %+v became %+v", before, after)
	}
	return took
}
