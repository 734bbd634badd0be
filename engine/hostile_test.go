package engine_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk"
)

// recorder is a tap that keeps what was sent.
type recorder struct{ frames [][]byte }

func (r *recorder) Frame(dir capture.Direction, head, tail []byte) {
	if dir == capture.Outbound {
		r.frames = append(r.frames, append(bytes.Clone(head), tail...))
	}
}

// Offsets in an untagged RoCE v2 frame over IPv4.
const (
	offIP  = 14
	offUDP = offIP + 20
	offBTH = offUDP + 8
)

// hostile are frames that a right one is made into, with the counter that must
// move by one. reseal reports whether the ICRC is made right again.
var hostile = []struct {
	name    string
	counter string
	reseal  bool
	change  func(frame []byte) []byte
}{
	{"ends in the IP header", "drop_truncated", false, func(f []byte) []byte { return f[:30] }},
	{"ends in the payload", "drop_truncated", false, func(f []byte) []byte { return f[:len(f)-5] }},
	{"bit of the ICRC", "drop_bad_icrc", false, func(f []byte) []byte {
		f[len(f)-1] ^= 1
		return f
	}},
	{"bit of the payload", "drop_bad_icrc", false, func(f []byte) []byte {
		f[offBTH+20] ^= 1
		return f
	}},
	{"unknown QPN", "drop_unknown_qpn", true, func(f []byte) []byte {
		f[offBTH+7] ^= 1
		return f
	}},
	{"multicast QPN", "drop_multicast", true, func(f []byte) []byte {
		copy(f[offBTH+5:], []byte{0xff, 0xff, 0xff})
		return f
	}},
	{"wrong P_Key", "drop_bad_pkey", true, func(f []byte) []byte {
		f[offBTH+3] = 0x12
		return f
	}},
	{"transport version", "drop_bad_tver", true, func(f []byte) []byte {
		f[offBTH+1] |= 1
		return f
	}},
	{"unknown opcode", "drop_unknown_opcode", true, func(f []byte) []byte {
		f[offBTH] = 0xff
		return f
	}},
	{"opcode of UC", "drop_wrong_service", true, func(f []byte) []byte {
		f[offBTH] = byte(wire.UCSendOnly)
		return f
	}},
	{"other source address", "drop_bad_source", true, func(f []byte) []byte {
		f[offIP+15] ^= 1
		binary.BigEndian.PutUint16(f[offIP+10:], 0)
		binary.BigEndian.PutUint16(f[offIP+10:], ipChecksum(f[offIP:offUDP]))
		return f
	}},
	{"fragment", "drop_fragment", true, func(f []byte) []byte {
		f[offIP+6] = 0x20
		binary.BigEndian.PutUint16(f[offIP+10:], 0)
		binary.BigEndian.PutUint16(f[offIP+10:], ipChecksum(f[offIP:offUDP]))
		return f
	}},
	{"UDP length beyond the packet", "drop_bad_udp_length", false, func(f []byte) []byte {
		f[offUDP+4] = 0xff
		return f
	}},
	{"PSN far ahead", "out_of_sequence", true, func(f []byte) []byte {
		psn := wire.PSN(binary.BigEndian.Uint32(f[offBTH+8:]) & 0xffffff)
		wire.SetBTHPSN(f[offBTH:], psn.Add(1000))
		return f
	}},
	{"PSN of long ago", "duplicate_request", true, func(f []byte) []byte {
		psn := wire.PSN(binary.BigEndian.Uint32(f[offBTH+8:]) & 0xffffff)
		wire.SetBTHPSN(f[offBTH:], psn.Sub(1000))
		return f
	}},
	{"other EtherType", "drop_not_roce", false, func(f []byte) []byte {
		f[13] = 0x06
		return f
	}},
}

// ipChecksum is the IPv4 header checksum, the slow and obvious way.
func ipChecksum(h []byte) uint16 {
	var sum uint32
	for i := 0; i < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// TestHostileFrames injects what no honest peer sends. Each is counted under
// its own name, changes nothing and is answered at most with an ACK or a NAK;
// the connection goes on.
func TestHostileFrames(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			clock := &sim.VirtualClock{}
			network := newNetwork(t, 1, clock, sim.Faults{})
			tap := &recorder{}
			devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true, Tap: tap})
			attacker, err := network.NewPort(sim.PortConfig{MAC: [6]byte{2, 9}, MTU: 4200})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = attacker.Close() }()
			a, b := newSide(t, devA), newSide(t, devB)
			connect(t, a, b)
			virtualSend(t, network, clock, a, b)

			frame := tt.change(bytes.Clone(tap.frames[0]))
			if tt.reseal {
				reseal(frame)
			}
			before := counters(t, devB)
			inject(t, attacker, frame)
			for devB.Progress() {
				continue
			}
			after := counters(t, devB)
			if after[tt.counter] != before[tt.counter]+1 {
				for name, v := range after {
					if v != before[name] {
						t.Logf("%s moved by %d", name, v-before[name])
					}
				}
				t.Errorf("%s did not move by one", tt.counter)
			}
			virtualSend(t, network, clock, a, b)
		})
	}
}

// virtualSend moves one message and checks it, with both QPs alive after it.
func virtualSend(t *testing.T, network *sim.Network, clock *sim.VirtualClock, a, b *side) {
	t.Helper()
	clear(b.mr.Bytes()[:100])
	copy(a.mr.Bytes(), "a message of some length that is not a multiple of four bytes.")
	if err := b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 100)}}); err != nil {
		t.Fatal(err)
	}
	err := a.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 62)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var wcs []roce.Completion
	done := func() bool {
		for _, s := range []*side{a, b} {
			var some [4]roce.Completion
			n, err := s.cq.Poll(some[:])
			if err != nil {
				t.Fatal(err)
			}
			wcs = append(wcs, some[:n]...)
		}
		return len(wcs) == 2
	}
	if err := network.Run(clock, clock.Now()+10*roce.Second, done, a.dev, b.dev); err != nil {
		t.Fatalf("%v\n%v\n%v", err, a.qp.Snapshot(), b.qp.Snapshot())
	}
	for _, wc := range wcs {
		if wc.Status != roce.StatusSuccess {
			t.Errorf("%s: %s", wc.Opcode, wc.Status)
		}
	}
	if !bytes.Equal(a.mr.Bytes()[:62], b.mr.Bytes()[:62]) || b.mr.Bytes()[62] != 0 {
		t.Error("data differs")
	}
}

// reseal makes the ICRC right again, bit by bit, independently of the code under
// test.
func reseal(frame []byte) {
	masked := bytes.Clone(frame[offIP : len(frame)-4])
	for _, i := range []int{1, 8, 10, 11, 26, 27, 28 + 4} {
		masked[i] = 0xff
	}
	crc := ^uint32(0)
	for _, b := range append(bytes.Repeat([]byte{0xff}, 8), masked...) {
		crc ^= uint32(b)
		for range 8 {
			crc = crc>>1 ^ 0xedb88320*(crc&1)
		}
	}
	binary.LittleEndian.PutUint32(frame[len(frame)-4:], ^crc)
}

// inject sends one frame from a port.
func inject(t *testing.T, link xsk.Link, frame []byte) {
	t.Helper()
	var tx [1]xsk.TxFrame
	if link.Reserve(tx[:]) != 1 {
		t.Fatal("no transmit frame")
	}
	tx[0].Len = copy(tx[0].Data, frame)
	link.Transmit(tx[:])
	if err := link.Flush(); err != nil {
		t.Fatal(err)
	}
}
