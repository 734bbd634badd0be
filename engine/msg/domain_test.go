package msg_test

import (
	"io"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
)

// TestNothingIsLeftOfConnections: each connection has a protection domain and memory of its own,
// and when it is over neither is left, however it ended.
func TestNothingIsLeftOfConnections(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	a, b := newStrangerHost(t, network, 1), newStrangerHost(t, network, 2)
	hosts := []*strangerHost{a, b}
	var before [2]engine.ResourceCount
	var ends [2]*msg.Endpoint
	for i, h := range hosts {
		before[i] = h.dev.Resources(0).Total
		ends[i], err = msg.Open(h.dev, h.manager, msg.Options{})
		must(t, err)
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), 7471)
	l, err := ends[1].Listen(at)
	must(t, err)
	ctx := within(t)
	for n := range 6 {
		accepted := make(chan *msg.Conn, 1)
		go func() {
			c, _ := l.Accept(ctx)
			accepted <- c
		}()
		if n == 5 {
			s, ring := a.mustDial(t, at)
			ring.RKey++
			s.write(ring, 0, s.frame(0, nil, 0))
			<-(<-accepted).Done()
			s.conn.Close()
			must(t, s.mr.Deregister())
			<-s.conn.Released()
			must(t, s.pd.Close())
			must(t, s.cq.Close())
			break
		}
		ca, err := ends[0].Dial(ctx, at)
		must(t, err)
		cb := <-accepted
		s := &msg.Send{Buffers: [][]byte{make([]byte, 300_000)}, Protocol: rmsg.Protocol(n)}
		must(t, ca.PostSend(s))
		_, err = cb.Receive(ctx, make([]byte, 300_000))
		must(t, err)
		must(t, s.Wait(ctx))
		if n%2 == 0 {
			closed := make(chan error, 1)
			go func() { closed <- cb.Close(ctx) }()
			must(t, ca.Close(ctx))
			must(t, <-closed)
		}
	}
	l.Close()
	for i, h := range hosts {
		must(t, ends[i].Close())
		if after := h.dev.Resources(0).Total; after != before[i] {
			t.Errorf("host %d: %+v, before %+v", i, after, before[i])
		}
	}
}

// TestDomainOutlivesQueuePair: bytes that were not read stay when the connection of a stream and
// its queue pair are over. The protection domain of that goes with them, not before.
func TestDomainOutlivesQueuePair(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	var ends [2]*msg.Endpoint
	a, b := newStrangerHost(t, network, 1), newStrangerHost(t, network, 2)
	for i, h := range []*strangerHost{a, b} {
		ends[i], err = msg.Open(h.dev, h.manager, msg.Options{})
		must(t, err)
	}
	before := b.dev.Resources(0).Total
	l, err := ends[1].ListenStream(
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 2}), streamPort))
	must(t, err)
	sa, sb := connectStreams(t, ends[0], l)
	must(t, l.Close())
	_, err = sa.Write([]byte("hello"))
	must(t, err)
	must(t, sb.CloseWrite())
	must(t, sa.Close())
	for ctx := within(t); b.dev.Resources(0).Total.QP != before.QP; {
		must(t, ctx.Err())
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	if n := b.dev.Resources(0).Total.PD; n != before.PD+1 {
		t.Errorf("%d protection domains", n-before.PD)
	}
	got, err := io.ReadAll(sb)
	if must(t, err); string(got) != "hello" {
		t.Errorf("read %q", got)
	}
	must(t, sb.Close())
	for _, e := range ends {
		must(t, e.Close())
	}
	if after := b.dev.Resources(0).Total; after.PD != before.PD || after.MR != before.MR {
		t.Errorf("%+v, before %+v", after, before)
	}
}
