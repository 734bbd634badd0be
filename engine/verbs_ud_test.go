package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

const (
	qkey   = 0x11223344
	grhLen = 40
)

// datagramSeat is a seat with a UD QP that was started.
func datagramSeat(t *testing.T, dev *engine.Device, init engine.QPInit) *seat {
	t.Helper()
	init.Type = roce.TypeUD
	s := seatOn(t, dev, init)
	if err := s.qp.Start(qkey); err != nil {
		t.Fatal(err)
	}
	return s
}

// handle makes an address handle of a seat to a GID.
func (s *seat) handle(t *testing.T, to wire.GID, index int) *roce.AH {
	t.Helper()
	ah, err := s.dev.CreateAH(t.Context(), s.pd, engine.AddressVector{
		DGID: to, SGIDIndex: index, TClass: 0x68,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ah
}

// datagram is a work request to a seat, from the front of the region.
func (s *seat) datagram(ah *roce.AH, qpn uint32, n int) roce.SendWR {
	return roce.SendWR{
		Opcode: roce.OpSendImm, Flags: roce.SendSignaled, Imm: 0xfeedface,
		SGList: []roce.SGE{s.mr.SGE(0, n)}, AH: ah, RemoteQPN: qpn, RemoteQKey: qkey,
	}
}

// TestDatagramsAndReplies sends datagrams of every size over IPv4 and IPv6, and
// answers each with what its receive tells.
func TestDatagramsAndReplies(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a := datagramSeat(t, w.devs[0], engine.QPInit{})
		b := datagramSeat(t, w.devs[1], engine.QPInit{})
		mtu := w.devs[0].ActiveMTU().Bytes()
		for index, gid := range w.devs[1].GIDs() {
			if index == 0 {
				continue // the simulated ports resolve no link-local address
			}
			ah := a.handle(t, gid, index)
			for _, size := range []int{0, 1, 3, 64, mtu - 1, mtu} {
				t.Run(fmt.Sprintf("gid %d, %d bytes", index, size), func(t *testing.T) {
					for i := range size {
						a.mr.Bytes()[i] = byte(i*7 + size)
					}
					roundTrip(t, w, a, b, ah, size)
				})
			}
		}
	})
}

// roundTrip sends a datagram from a to b and answers it.
func roundTrip(t *testing.T, w *world, a, b *seat, ah *roce.AH, size int) {
	t.Helper()
	const back = 1 << 16 // where a has the answer
	b.recv(t, 1, 0, grhLen+size)
	a.send(t, a.datagram(ah, b.qp.QPN(), size))
	w.succeed(a.cq, 1)
	wc := w.succeed(b.cq, 1)[0]
	want := roce.Completion{
		WRID: 1, Opcode: roce.WCRecv, Flags: roce.WCGRH | roce.WCWithImm, QPN: b.qp.QPN(),
		ByteLen: uint32(grhLen + size), Imm: 0xfeedface, SrcQP: a.qp.QPN(), Time: wc.Time,
	}
	if wc != want {
		t.Fatalf("completion %+v, want %+v", wc, want)
	}
	av, err := b.dev.ReplyVector(b.mr.Bytes()[:grhLen])
	if err != nil {
		t.Fatal(err)
	}
	path := ah.Path()
	if av.DGID != path.Src || b.dev.GIDs()[av.SGIDIndex] != path.Dst || av.TClass != 0x68 {
		t.Fatalf("reply vector %+v to a datagram from %s to %s", av, path.Src, path.Dst)
	}
	reply, err := b.dev.CreateAH(t.Context(), b.pd, av)
	if err != nil {
		t.Fatal(err)
	}
	a.recv(t, 2, back, grhLen+size)
	wr := b.datagram(reply, wc.SrcQP, 0)
	wr.SGList = []roce.SGE{b.mr.SGE(grhLen, size)}
	b.send(t, wr)
	w.succeed(b.cq, 1)
	w.succeed(a.cq, 1)
	if !bytes.Equal(a.mr.Bytes()[back+grhLen:][:size], a.mr.Bytes()[:size]) {
		t.Error("the answer is not what was sent")
	}
}

// TestDatagramsDropped sends datagrams that must not arrive, and behind each one
// that must. Each is counted as what it is.
func TestDatagramsDropped(t *testing.T) {
	mtu := wire.MTU4096.Bytes()
	for _, tt := range []struct {
		name    string
		change  func(*roce.SendWR)
		receive int // bytes of the only receive
		at      int // the device that counts
		counter string
	}{
		{"Q_Key", func(wr *roce.SendWR) { wr.RemoteQKey++ }, 1 << 13, 1, "drop_bad_qkey"},
		{"no QP", func(wr *roce.SendWR) { wr.RemoteQPN = 17 }, 1 << 13, 1, "drop_unknown_qpn"},
		{"above the MTU", nil, 1 << 13, 0, "datagram_too_long"},
		{"above the receive", nil, grhLen + 99, 1, "drop_too_long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
				a := datagramSeat(t, w.devs[0], engine.QPInit{})
				b := datagramSeat(t, w.devs[1], engine.QPInit{})
				ah := a.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4)
				b.recv(t, 1, 0, tt.receive)
				wr := a.datagram(ah, b.qp.QPN(), 100)
				switch {
				case tt.change != nil:
					tt.change(&wr)
				case tt.receive == 1<<13:
					wr.SGList[0].Length = uint32(mtu + 1)
				}
				a.send(t, wr)
				w.succeed(a.cq, 1)
				last := a.datagram(ah, b.qp.QPN(), 50)
				last.Imm = 2
				a.send(t, last)
				w.succeed(a.cq, 1)
				if wc := w.succeed(b.cq, 1)[0]; wc.ByteLen != grhLen+50 || wc.Imm != 2 {
					t.Errorf("it is not the second one that came: %+v", wc)
				}
				if n := counterOf(t, w.devs[tt.at], tt.counter); n != 1 {
					t.Errorf("%s is %d, want 1", tt.counter, n)
				}
			})
		})
	}
}

// TestDatagramWithoutReceive is dropped and counted.
func TestDatagramWithoutReceive(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a := datagramSeat(t, w.devs[0], engine.QPInit{})
		b := datagramSeat(t, w.devs[1], engine.QPInit{})
		ah := a.handle(t, w.devs[1].GIDs()[gidIPv6], gidIPv6)
		a.send(t, a.datagram(ah, b.qp.QPN(), 10))
		w.succeed(a.cq, 1)
		w.run(func() bool { return counterOf(t, w.devs[1], "out_of_buffer") == 1 })
	})
}

// TestPrivilegedQKey has the QP's own Q_Key go instead of a privileged one.
func TestPrivilegedQKey(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := datagramSeat(t, w.devs[0], engine.QPInit{}), datagramSeat(t, w.devs[1], engine.QPInit{})
	b.recv(t, 1, 0, 1000)
	wr := a.datagram(a.handle(t, w.devs[1].GIDs()[1], 1), b.qp.QPN(), 10)
	wr.RemoteQKey = roce.GSIQKey
	a.send(t, wr)
	w.succeed(b.cq, 1)
}

// TestDatagramMisuse is refused with an error of the right kind.
func TestDatagramMisuse(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, other := datagramSeat(t, w.devs[0], engine.QPInit{}), w.devs[0].AllocPD()
	gid := w.devs[1].GIDs()[gidIPv4]
	ah, err := w.devs[0].CreateAH(t.Context(), other, engine.AddressVector{DGID: gid, SGIDIndex: 1})
	if err != nil {
		t.Fatal(err)
	}
	if hops := ah.Path().HopLimit; hops != 64 {
		t.Errorf("a hop limit of %d by default", hops)
	}
	wr := a.datagram(ah, 17, 10)
	if err := a.qp.PostSend(&wr); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("an address handle of another domain: %v", err)
	}
	_, err = w.devs[1].CreateAH(t.Context(), other, engine.AddressVector{DGID: gid, SGIDIndex: 1})
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a domain of another device: %v", err)
	}
	if _, err := w.devs[0].ReplyVector(make([]byte, 39)); !errors.Is(err, wire.ErrShort) {
		t.Errorf("39 bytes to reply to: %v", err)
	}
	if _, err := w.devs[0].ReplyVector(make([]byte, 40)); !errors.Is(err, wire.ErrGRH) {
		t.Errorf("zeros to reply to: %v", err)
	}
	group := wire.GIDFromAddr(netip.MustParseAddr("ff02::1"))
	came := make([]byte, wire.GRHLen)
	wire.GRH{IPVer: 6, NxtHdr: 17, SGID: group, DGID: w.devs[0].GIDs()[0]}.Put(came)
	if av, err := w.devs[0].ReplyVector(came); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a datagram from a group is answered to %s: %v", av.DGID, err)
	}
	if err := a.qp.Init(rights); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("Init of a UD QP: %v", err)
	}
	_, err = w.devs[0].CreateQP(a.pd, engine.QPInit{Type: roce.TypeGSI, SendCQ: a.cq, RecvCQ: a.cq})
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("a GSI QP: %v", err)
	}
}
