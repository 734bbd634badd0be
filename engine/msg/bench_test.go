package msg_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// A loop is a device that nobody drives but a benchmark, with connections to itself: one goroutine
// does all that both ends do, so that a processor that is shared or slow costs both peers alike.
type loop struct {
	dev     *engine.Device
	manager *cm.Manager
	addr    netip.Addr
}

func newLoop(b testing.TB) *loop {
	b.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(b, err)
	l := &loop{addr: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 4200, Addrs: []netip.Addr{l.addr},
	})
	must(b, err)
	l.dev, err = engine.OpenLink(port, port, engine.Options{Direct: true})
	must(b, err)
	b.Cleanup(func() { must(b, l.dev.Close()) })
	l.manager, err = cm.Open(l.dev, quick)
	must(b, err)
	b.Cleanup(func() { must(b, l.manager.Close()) })
	return l
}

// messages connects an endpoint with itself: who waits for one end does what the other is to do.
func (l *loop) messages(b testing.TB) (e *msg.Endpoint, ca, cb *msg.Conn) {
	b.Helper()
	return l.messagesSpinning(b, time.Hour)
}

// messagesSpinning is messages for ends that spin for so long, and sleep then.
func (l *loop) messagesSpinning(b testing.TB, spin time.Duration) (
	e *msg.Endpoint, ca, cb *msg.Conn,
) {
	b.Helper()
	return l.messagesWith(b, msg.Options{Spin: spin})
}

// messagesWith is messages with other options.
func (l *loop) messagesWith(b testing.TB, o msg.Options) (e *msg.Endpoint, ca, cb *msg.Conn) {
	b.Helper()
	e, err := msg.Open(l.dev, l.manager, o)
	must(b, err)
	b.Cleanup(func() { must(b, e.Close()) })
	ctx, at := within(b), netip.AddrPortFrom(l.addr, 7471)
	listener, err := e.Listen(at)
	must(b, err)
	defer listener.Close()
	accepted := make(chan error, 1)
	go func() {
		var err error
		cb, err = listener.Accept(ctx)
		accepted <- err
	}()
	ca, err = e.Dial(ctx, at)
	must(b, err)
	must(b, <-accepted)
	return e, ca, cb
}

// A verbsEnd is an end of a connection without messages.
type verbsEnd struct {
	qp  *engine.QP
	cq  *engine.CQ
	mr  *engine.MR
	wcs [64]roce.Completion
}

// verbs connects two queue pairs with memory of n bytes each.
func (l *loop) verbs(b testing.TB, n int) (client, server *verbsEnd) {
	b.Helper()
	at := netip.AddrPortFrom(l.addr, 7472)
	listener, err := l.manager.Listen(at)
	must(b, err)
	defer listener.Close()
	accepted := make(chan error, 1)
	ctx := within(b)
	pd := l.dev.AllocPD()
	setup := func() (*verbsEnd, cm.Setup) {
		e := &verbsEnd{}
		var err error
		e.cq, err = l.dev.CreateCQ(1024)
		must(b, err)
		e.mr, err = l.dev.AllocMR(pd, n, mem.LocalWrite|mem.RemoteWrite)
		must(b, err)
		return e, cm.Setup{PD: pd, Access: mem.RemoteWrite, Init: engine.QPInit{
			SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 256, MaxRecvWR: 256, MaxInline: 64,
		}}
	}
	client, dial := setup()
	server, accept := setup()
	go func() {
		r, err := listener.Accept(ctx)
		if err == nil {
			var c *cm.Conn
			if c, err = r.Accept(ctx, accept); err == nil {
				server.qp = c.QP()
			}
		}
		accepted <- err
	}()
	c, err := l.manager.Dial(ctx, at, dial)
	must(b, err)
	must(b, <-accepted)
	client.qp = c.QP()
	return client, server
}

// burstLen is how many messages are posted at once.
const burstLen = 64

// poll takes n completions.
func (v *verbsEnd) poll(n int) error {
	for n > 0 {
		m, err := v.cq.Poll(v.wcs[:])
		if err != nil {
			return err
		}
		for i := range v.wcs[:m] {
			if err := v.wcs[i].Err(); err != nil {
				return err
			}
		}
		n -= m
	}
	return nil
}

// send posts n SENDs of so many bytes, the last one signaled, and receives for them before.
func (v *verbsEnd) send(peer *verbsEnd, n, size int) error {
	receive := roce.RecvWR{SGList: []roce.SGE{peer.mr.SGE(0, size)}}
	for range n {
		if err := peer.qp.PostRecv(&receive); err != nil {
			return err
		}
	}
	wr := roce.SendWR{Opcode: roce.OpSend, SGList: []roce.SGE{v.mr.SGE(0, size)}}
	for i := range n {
		if i == n-1 {
			wr.Flags = roce.SendSignaled
		}
		if err := v.qp.PostSend(&wr); err != nil {
			return err
		}
	}
	if err := peer.poll(n); err != nil {
		return err
	}
	return v.poll(1)
}

// write writes so many bytes.
func (v *verbsEnd) write(peer *verbsEnd, size int) error {
	err := v.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpWrite, Flags: roce.SendSignaled, SGList: []roce.SGE{v.mr.SGE(0, size)},
		RemoteAddr: peer.mr.Addr(), RKey: peer.mr.RKey(),
	})
	return errors.Join(err, v.poll(1))
}

// A burst is messages from one end to the other that are posted and received together.
type burst struct {
	endpoint *msg.Endpoint
	from, to *msg.Conn
	sends    []*msg.Send
	receives []*msg.Receive
}

func newBurst(e *msg.Endpoint, from, to *msg.Conn, n, size int) *burst {
	u := &burst{endpoint: e, from: from, to: to}
	for range n {
		u.sends = append(u.sends, &msg.Send{Buffers: [][]byte{make([]byte, size)}})
		u.receives = append(u.receives, &msg.Receive{Buffers: [][]byte{make([]byte, size)}})
	}
	return u
}

// run sends all, and returns when they are received.
func (u *burst) run(ctx context.Context) error {
	for _, r := range u.receives {
		r.From, r.Tag, r.Mask = u.to, 0, ^uint64(0)
	}
	_, err := u.endpoint.PostReceives(u.receives)
	if err != nil {
		return err
	}
	if _, err := u.from.PostSends(u.sends); err != nil {
		return err
	}
	for i := range u.sends {
		if err := errors.Join(u.receives[i].Wait(ctx), u.sends[i].Wait(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// costs does two things in turn, many times each, and reports how long the processor was busy with
// one of ours and one of the peer's, and the median of the ratios of the rounds: more than 1 is
// cheaper than the peer.
func costs(b *testing.B, rounds, per int, ours, peer func() error) {
	b.Helper()
	cpu := func() time.Duration {
		var r syscall.Rusage
		must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	var took [2]time.Duration
	var ratios []float64
	for range b.N {
		var round [2]time.Duration
		for i, f := range []func() error{ours, peer} {
			begin := cpu()
			for range rounds {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			round[i] = cpu() - begin
			took[i] += round[i]
		}
		ratios = append(ratios, float64(round[1])/float64(round[0]))
	}
	slices.Sort(ratios)
	n := float64(b.N * rounds * per)
	b.ReportMetric(float64(took[0])/n, "ns/ours")
	b.ReportMetric(float64(took[1])/n, "ns/peer")
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMessages has messages beside verbs, on one goroutine that moves all packets: 64 bytes in
// bulk and one at a time beside SEND, and what is long beside WRITE, with a copy at the sender, one
// at the receiver or none more than that.
func BenchmarkMessages(b *testing.B) {
	const most = 1 << 20
	l := newLoop(b)
	e, ca, cb := l.messages(b)
	client, server := l.verbs(b, most)
	ctx := within(b)
	for _, c := range []struct {
		name         string
		n, size, per int
		peer         func() error
	}{
		{"64B-bulk", burstLen, 64, 200, func() error { return client.send(server, burstLen, 64) }},
		{"64B", 1, 64, 2000, func() error { return client.send(server, 1, 64) }},
		{"8KiB", 1, 8 << 10, 500, func() error { return client.write(server, 8<<10) }},
		{"64KiB", 1, 64 << 10, 100, func() error { return client.write(server, 64<<10) }},
		{"1MiB", 1, most, 10, func() error { return client.write(server, most) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			u := newBurst(e, ca, cb, c.n, c.size)
			ours := func() error { return u.run(ctx) }
			must(b, ours()) // slots are made
			costs(b, c.per, c.n, ours, c.peer)
		})
	}
}

// TestBurstsDoNotAllocate: many messages at once allocate nothing, nor do those that go through
// large slots.
func TestBurstsDoNotAllocate(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	ctx := within(t)
	for _, size := range []int{64, 8000} {
		u := newBurst(e, ca, cb, burstLen, size)
		run := func() { must(t, u.run(ctx)) }
		for range 100 {
			run()
		}
		if n := testing.AllocsPerRun(200, run); n > 0 {
			t.Errorf("%v allocations for %d messages of %d bytes", n, burstLen, size)
		}
	}
}
