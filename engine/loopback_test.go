package engine_test

import (
	"bytes"
	"crypto/rand"
	"testing"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// bothWays is a tap that keeps what passes in each direction.
type bothWays struct{ frames [2][][]byte }

func (b *bothWays) Frame(dir capture.Direction, head, tail []byte) {
	i := 0
	if dir == capture.Inbound {
		i = 1
	}
	b.frames[i] = append(b.frames[i], append(bytes.Clone(head), tail...))
}

// expectLoopback checks that what was sent was received, every byte of it, and
// that the network saw nothing of it.
func (b *bothWays) expectLoopback(t *testing.T, network *sim.Network) {
	t.Helper()
	out, in := b.frames[0], b.frames[1]
	if len(out) == 0 || len(in) != len(out) {
		t.Fatalf("the tap saw %d frames leave and %d come", len(out), len(in))
	}
	for i := range out {
		if !bytes.Equal(out[i], in[i]) {
			t.Fatalf("frame %d came as another", i)
		}
	}
	if c := network.Counts(); c.Sent != 0 {
		t.Errorf("%d frames went to the network", c.Sent)
	}
}

// TestLoopback joins two QPs of one device.
func TestLoopback(t *testing.T) {
	clock := engine.NewSystemClock()
	network, tap := newNetwork(t, 1, clock, sim.Faults{}), &bothWays{}
	dev := openPort(t, network, 0, engine.Options{Clock: clock, Tap: tap})
	a, b := newSide(t, dev), newSide(t, dev)
	// As over AF_XDP: a busy machine is late, and that is no loss.
	connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
	for _, size := range []int{0, 1, 64, 4096, 4097, regionSize} {
		exchange(t, a, b, size)
		exchange(t, b, a, size)
	}
	values := counters(t, dev)
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	tap.expectLoopback(t, network)
	own, sent := values["loopback_packets"], values["tx_packets"]
	if own != uint64(len(tap.frames[0])) || sent != 0 {
		t.Errorf("%d packets counted of %d, %d on the link", own, len(tap.frames[0]), sent)
	}
	for _, lossy := range []string{"retransmits", "out_of_sequence", "drop_bad_icrc"} {
		if values[lossy] != 0 {
			t.Errorf("%s is %d", lossy, values[lossy])
		}
	}
}

// TestLoopbackToItself has one QP be its own peer.
func TestLoopbackToItself(t *testing.T) {
	for _, direct := range []bool{false, true} {
		clock := engine.NewSystemClock()
		network, tap := newNetwork(t, 1, clock, sim.Faults{}), &bothWays{}
		dev := openPort(t, network, 0, engine.Options{Clock: clock, Tap: tap, Direct: direct})
		s := newSide(t, dev)
		err := s.qp.Connect(t.Context(), s.end, s.end, engine.ConnectOptions{SGIDIndex: 1})
		if err != nil {
			t.Fatal(err)
		}
		const size = 100_000
		for _, op := range []roce.Opcode{
			roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm, roce.OpRead,
		} {
			here, there := 0, regionSize/2
			_, _ = rand.Read(s.mr.Bytes()[here : here+size])
			_, _ = rand.Read(s.mr.Bytes()[there : there+size])
			s.see()
			wanted := 1
			if op == roce.OpSend || op == roce.OpSendImm || op == roce.OpWriteImm {
				err := s.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{s.mr.SGE(there, size)}})
				if err != nil {
					t.Fatal(err)
				}
				wanted = 2
			}
			err := s.qp.PostSend(&roce.SendWR{
				Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{s.mr.SGE(here, size)},
				RemoteAddr: s.mr.Addr() + uint64(there), RKey: s.mr.RKey(),
			})
			if err != nil {
				t.Fatal(err)
			}
			s.wait(t, wanted)
			s.see()
			if !bytes.Equal(s.mr.Bytes()[here:here+size], s.mr.Bytes()[there:there+size]) {
				t.Errorf("direct %t, %s: data differs", direct, op)
			}
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
		tap.expectLoopback(t, network)
	}
}

// TestLoopbackIsFull has QPs send to each other and to another host more than
// the loopback holds: they wait, nothing is lost, and nothing is allocated.
func TestLoopbackIsFull(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{})
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	var ends []*side
	for range 4 {
		a, b := newSide(t, devA), newSide(t, devA)
		connect(t, a, b)
		ends = append(ends, a, b)
	}
	far, peer := newSide(t, devA), newSide(t, devB)
	connect(t, far, peer)
	var wcs [64]roce.Completion
	traffic := func() {
		for i := 0; i < len(ends); i += 2 {
			postWrites(t, ends[i], ends[i+1], 8, 100_000)
			postWrites(t, ends[i+1], ends[i], 8, 100_000)
		}
		postWrites(t, far, peer, 8, 100_000)
		left := 8*len(ends) + 8
		done := func() bool {
			for _, s := range append(ends, far) {
				n, err := s.cq.Poll(wcs[:])
				if err != nil {
					t.Fatal(err)
				}
				left -= n
			}
			return left == 0
		}
		if err := network.Run(clock, clock.Now()+roce.Second, done, devA, devB); err != nil {
			t.Fatal(err)
		}
	}
	traffic()
	if n := counters(t, devA)["retransmits"]; n != 0 {
		t.Errorf("%d retransmits", n)
	}
	// Posting in this test allocates; the 1800 packets must not.
	if n := testing.AllocsPerRun(5, traffic); n > 300 {
		t.Errorf("%v allocations", n)
	}
}

// TestLoopbackOverAFXDP resolves the addresses of the host itself, in each
// family, and talks to them.
func TestLoopbackOverAFXDP(t *testing.T) {
	xsktest.NeedRoot(t)
	_, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	for index, gid := range devs[0].GIDs() {
		path, err := devs[0].ResolvePath(t.Context(), engine.AddressVector{
			DGID: gid, SGIDIndex: index,
		})
		if own := devs[0].Port().MAC; err != nil || path.DstMAC != own {
			t.Errorf("%s: %+v, %v", gid, path, err)
		}
	}
	a, b := newSide(t, devs[0]), newSide(t, devs[0])
	connect(t, a, b)
	exchange(t, a, b, regionSize)
	if n := counters(t, devs[0])["tx_packets"]; n != 0 {
		t.Errorf("%d packets left", n)
	}
}
