package engine_test

import (
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// v1 is the index of the same address, of type RoCE v1.
func v1(index int) int { return index + engine.GIDTableLen/2 }

// v1Worlds runs a test with two devices on the simulated wire and over AF_XDP. The tap
// sees what comes to either.
func v1Worlds(
	t *testing.T, o engine.Options, test func(*testing.T, *world, *frameTap),
) {
	t.Helper()
	tap := &frameTap{}
	o.Tap = tap
	inWorlds(t, o, func(t *testing.T, w *world) {
		tap.take()
		test(t, w, tap)
	})
}

// onlyV1 fails for a frame that is not RoCE v1, or whose ICRC is wrong.
func onlyV1(t *testing.T, frames [][]byte) {
	t.Helper()
	if len(frames) == 0 {
		t.Error("no frame came")
	}
	for _, f := range frames {
		var p wire.Packet
		if r := p.Decode(f, nil); r != wire.OK || p.Framing != wire.FramingV1 || !p.VerifyICRC() {
			t.Fatalf("%s %s: % x", r, p.Framing, f)
		}
	}
}

// TestRoCEv1 runs connections between GIDs of type RoCE v1, of each kind of address.
func TestRoCEv1(t *testing.T) {
	v1Worlds(t, engine.Options{}, func(t *testing.T, w *world, tap *frameTap) {
		for _, index := range []int{0, gidIPv4, gidIPv6} {
			a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
			join(t, a, b, engine.ConnectOptions{SGIDIndex: v1(index)})
			for _, op := range []roce.Opcode{
				roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm,
			} {
				transfer(t, w, a, b, op, 9000)
				transfer(t, w, b, a, op, 9000)
			}
			a.send(t, writeTo(a, b, roce.OpRead, 9000))
			w.succeed(a.cq, 1)
		}
		frames := tap.take()
		onlyV1(t, frames)
		tsharkAgrees(t, frames, "eth.type==0x8915 && infiniband.grh.nxthdr==0x1b")
	})
}

// TestRoCEv1Datagrams come with their GRH, are answered by RoCE v1, and reach groups.
func TestRoCEv1Datagrams(t *testing.T) {
	v1Worlds(t, engine.Options{RoCEv1: true}, func(t *testing.T, w *world, tap *frameTap) {
		a := datagramSeat(t, w.devs[0], engine.QPInit{})
		b := datagramSeat(t, w.devs[1], engine.QPInit{})
		group := wire.MulticastGID(netip.MustParseAddr("239.193.2.3"), wire.FramingV1)
		b.attach(t, group)
		for _, c := range []struct {
			to    wire.GID
			qpn   uint32
			index int
		}{
			{w.devs[1].GIDs()[gidIPv4], b.qp.QPN(), gidIPv4},
			{w.devs[1].GIDs()[gidIPv6], b.qp.QPN(), gidIPv6},
			{group, wire.MulticastQP, gidIPv6},
			{group, wire.MulticastQP, gidIPv4},
		} {
			b.recv(t, 0, 0, 100)
			a.send(t, a.datagram(a.handle(t, c.to, v1(c.index)), c.qpn, 10))
			wc := w.succeed(b.cq, 1)[0]
			w.succeed(a.cq, 1)
			grh, err := wire.ParseGRH(b.mr.Bytes())
			if err != nil || grh.DGID != c.to || grh.SGID != w.devs[0].GIDs()[c.index] ||
				grh.NxtHdr != wire.GRHNxtHdrIBA || wc.ByteLen != grhLen+10 {
				t.Errorf("%s, %+v (%v)", grh, wc, err)
			}
			av, err := b.dev.ReplyVector(b.mr.Bytes()[:grhLen])
			if err != nil || av.SGIDIndex != v1(c.index) || av.DGID != grh.SGID {
				t.Errorf("the answer goes to %+v (%v)", av, err)
			}
		}
		onlyV1(t, tap.take())
	})
}

// TestTypesOfGIDMustAgree: RoCE v1 and v2 do not understand each other.
func TestTypesOfGIDMustAgree(t *testing.T) {
	v1Worlds(t, engine.Options{RoCEv1: true}, func(t *testing.T, w *world, _ *frameTap) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		joinFrom(t, a, b, [2]int{v1(gidIPv4), gidIPv4},
			engine.ConnectOptions{Timeout: 8, RetryCnt: 2})
		a.send(t, writeTo(a, b, roce.OpWrite, 100))
		if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRetryExcErr {
			t.Errorf("%s", wc.Status)
		}
		// The peer may not have looked at the last one yet: the retries take 1 ms each.
		dropped := func() uint64 { return counterOf(t, w.devs[1], "drop_bad_source") }
		if w.run(func() bool { return dropped() >= 3 }); dropped() != 3 {
			t.Errorf("drop_bad_source is %d, want 3", dropped())
		}
	})
}
