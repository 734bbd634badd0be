package cm_test

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	rcm "xroce/roce/cm"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/leaktest"
)

// received is how many MADs the manager has counted.
func (h *host) received() uint64 {
	c, lost := h.manager.Counters(), h.manager.Lost()
	n := c[rcm.DropNotCM] + lost.NotQP1 + lost.Martian
	for id := range rcm.CounterCount {
		if strings.HasPrefix(id.String(), "cm_rx_msgs_") {
			n += c[id]
		}
	}
	return n
}

// attackers makes queue pairs that can send to QP 1: a QP 1, and another one.
func (h *host) attackers(t *testing.T) (gsi, ud *engine.QP) {
	t.Helper()
	gsi, err := h.dev.CreateGSI(h.pd, engine.QPInit{SendCQ: h.cq, RecvCQ: h.cq, MaxInline: 512})
	must(t, err)
	must(t, gsi.Start(0))
	ud, err = h.dev.CreateQP(h.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: h.cq, RecvCQ: h.cq, MaxInline: 512,
	})
	must(t, err)
	must(t, ud.Start(roce.GSIQKey))
	return gsi, ud
}

// TestNoise sends MADs that nobody wants: noise, messages of other classes, messages
// of conversations that are not there, of every length, and from other queue pairs.
// Each is counted, and the next connection is made.
func TestNoise(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	must(t, a.manager.Close()) // its QP 1 is needed here
	gsi, ud := a.attackers(t)
	ah, err := a.dev.CreateAH(t.Context(), a.pd, engine.AddressVector{
		DGID: wire.GIDFromAddr(b.v4), SGIDIndex: 1,
	})
	must(t, err)
	send := func(qp *engine.QP, mad []byte) {
		t.Helper()
		must(t, qp.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: mad, AH: ah,
			RemoteQPN: 1, RemoteQKey: 1 << 31, // that of the QP
		}))
		var wcs [1]roce.Completion
		if _, err := a.cq.Wait(within(t, testTimeout), wcs[:]); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	total := 0
	for n := range 260 {
		send(gsi, noise(n))
		total++
	}
	for attribute := rcm.Attribute(0); attribute < 0x20; attribute++ {
		mad := noise(rcm.MADLen)
		message := make([]byte, rcm.MADLen)
		rcm.MessageHeader(attribute, 1).Put(message)
		copy(mad, message[:rcm.HeaderLen])
		send(gsi, mad)
		total++
	}
	for range 10 {
		send(ud, noise(rcm.MADLen))
		total++
	}
	// A MAD longer than the receive is dropped by the queue pair.
	const tooLong = 3
	for deadline := time.Now().Add(testTimeout); b.received() < uint64(total-tooLong); {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d are counted: %+v", b.received(), total, b.manager.Lost())
		}
		b.dev.Progress()
	}
	if n := b.received(); n != uint64(total-tooLong) {
		t.Errorf("%d were counted, want %d", n, total-tooLong)
	}
	if lost := b.manager.Lost(); lost.NotQP1 != 10 {
		t.Errorf("%+v", lost)
	}
	gsi.Close()
	ud.Close()
	a.manager, err = cm.Open(a.dev, quick)
	must(t, err)
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	s.conn(t).Close()
	c.Close()
}

// TestBurst lets more MADs come than the machine has room for answers, all at once:
// the manager answers some before it takes the others. Were it to take whatever is
// there, a peer that never stops would keep it from anything else, with all that it
// makes it remember.
func TestBurst(t *testing.T) {
	o := quick
	o.Receives = 4096
	_, hosts := newWorld(t, o, engine.Options{})
	a, b := hosts[0], hosts[1]
	must(t, a.manager.Close()) // its QP 1 is needed here
	gsi, ud := a.attackers(t)
	busy, release := make(chan struct{}), make(chan struct{})
	service, err := b.dev.CreateQP(b.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: b.cq, RecvCQ: b.cq,
	})
	must(t, err)
	_, err = b.manager.ListenDatagram(netip.AddrPortFrom(b.v4, 1), cm.Datagrams{
		QP: service,
		Allow: func(netip.AddrPort, []byte) bool {
			close(busy)
			<-release
			return false
		},
	})
	must(t, err)
	ah, err := a.dev.CreateAH(t.Context(), a.pd, engine.AddressVector{
		DGID: wire.GIDFromAddr(b.v4), SGIDIndex: 1,
	})
	must(t, err)
	mad := make([]byte, rcm.MADLen)
	send := func() {
		t.Helper()
		must(t, gsi.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: mad, AH: ah,
			RemoteQPN: 1, RemoteQKey: 1 << 31, // that of the QP
		}))
		var wcs [1]roce.Completion
		if _, err := a.cq.Wait(within(t, testTimeout), wcs[:]); err != nil {
			t.Fatal(err)
		}
	}
	question := rcm.SIDRREQ{
		PKey: wire.DefaultPKey, ServiceID: rcm.ServiceIDOf(rcm.PortSpaceUDP, 1),
	}
	rcm.IPHeader{Src: netip.AddrPortFrom(a.v4, 7), Dst: b.v4}.Put(question.Private[:])
	question.Put(mad, 1)
	send()
	<-busy
	before := b.packets(t)
	const burst = 3000
	for i := range burst {
		(&rcm.REQ{LocalCommID: uint32(i), LocalQPN: uint32(i)}).Put(mad, uint64(i))
		send()
	}
	waits(t, func() bool { return b.packets(t) == before+burst })
	close(release)
	waits(t, func() bool { return b.counted("cm_no_listener") == burst })
	if n := b.counted("cm_outbox_full"); n != 0 {
		t.Errorf("%d answers found no room", n)
	}
	gsi.Close()
	ud.Close()
	a.manager, err = cm.Open(a.dev, quick)
	must(t, err)
}

// TestFlowLabels sends requests that differ in what their sender is free to choose of
// the way: the answers go one way.
func TestFlowLabels(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	must(t, a.manager.Close()) // its QP 1 is needed here
	gsi, ud := a.attackers(t)
	mad := make([]byte, rcm.MADLen)
	(&rcm.REQ{LocalQPN: 5}).Put(mad, 1)
	const all = 200
	from, err := a.dev.SourceGID(b.v6)
	must(t, err)
	for label := range uint32(all) {
		ah, err := a.dev.CreateAH(t.Context(), a.pd, engine.AddressVector{
			DGID: wire.GIDFromAddr(b.v6), SGIDIndex: from, FlowLabel: label + 1,
		})
		must(t, err)
		must(t, gsi.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: mad, AH: ah,
			RemoteQPN: 1, RemoteQKey: 1 << 31, // that of the QP
		}))
		var wcs [1]roce.Completion
		if _, err := a.cq.Wait(within(t, testTimeout), wcs[:]); err != nil {
			t.Fatal(err)
		}
	}
	waits(t, func() bool { return b.counted("cm_no_listener") == all })
	if n := b.around.resolved.Load(); n > 1 {
		t.Errorf("the neighbour was asked for %d times", n)
	}
	gsi.Close()
	ud.Close()
	a.manager, err = cm.Open(a.dev, quick)
	must(t, err)
}

// packets is how many frames the device has received.
func (h *host) packets(t testing.TB) uint64 { t.Helper(); return packets(t, h.dev) }

func packets(t testing.TB, dev *engine.Device) uint64 {
	t.Helper()
	counters, err := dev.Counters()
	must(t, err)
	for _, c := range counters {
		if c.Name == "rx_packets" {
			return c.Value
		}
	}
	t.Fatal("no counter of frames")
	return 0
}

// TestDeviceCloses closes devices under connections, dials, lookups and waiting
// listeners: all of them end, with all that ran.
func TestDeviceCloses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close func(*host) error
	}{
		{"device", func(h *host) error { return h.dev.Close() }},
		{"manager", func(h *host) error { return h.manager.Close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			running := leaktest.Running()
			// Who is not answered gives up after 9 s, which is long after it is closed, however
			// busy the machine; a peer that is gone is not waited for as long as that.
			o := quick
			o.Machine.ResponseTimeout, o.Linger = 17, 50*time.Millisecond
			_, hosts := newWorld(t, o, engine.Options{})
			a, b := hosts[0], hosts[1]
			to := netip.AddrPortFrom(b.v4, 1)
			s := b.serve(t, to)
			c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
			must(t, err)
			d := s.conn(t)
			l, err := a.manager.Listen(to)
			must(t, err)
			// Nobody accepts these, and nobody answers those.
			_, err = b.manager.Listen(netip.AddrPortFrom(b.v4, 2))
			must(t, err)
			ended := make(chan error)
			go func() { _, err := l.Accept(within(t, testTimeout)); ended <- err }()
			go func() {
				ctx, to := within(t, testTimeout), netip.AddrPortFrom(b.v4, 2)
				_, err := a.manager.Dial(ctx, to, a.setup())
				ended <- err
			}()
			for b.manager.Usage().HalfOpen == 0 {
				time.Sleep(time.Millisecond)
			}
			must(t, tt.close(a))
			over(t, c.Done())
			for range 2 {
				if err := <-ended; !errors.Is(err, cm.ErrClosed) {
					t.Error(err)
				}
			}
			if _, err := a.manager.Listen(to); !errors.Is(err, cm.ErrClosed) {
				t.Error(err)
			}
			_, err = a.manager.Dial(within(t, testTimeout), to, a.setup())
			if err == nil {
				t.Error("a connection out of nothing")
			}
			if tt.name == "manager" {
				over(t, d.Done()) // it was told
			}
			c.Close()
			c.Close()
			d.Close()
			s.Close()
			s.running.Wait()
			must(t, errors.Join(a.manager.Close(), b.manager.Close()))
			must(t, errors.Join(a.dev.Close(), b.dev.Close()))
			leaktest.None(t, running)
		})
	}
}
