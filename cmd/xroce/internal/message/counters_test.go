package message

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce/clock"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// openNode makes an endpoint on a simulated wire.
func openNode(t *testing.T, network *sim.Network, n byte, c rmsg.Config) *msg.Endpoint {
	t.Helper()
	port, err1 := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 1500,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
	})
	dev, err2 := engine.OpenLink(port, port, engine.Options{})
	manager, err3 := cm.Open(dev, cm.Options{})
	e, err4 := msg.Open(dev, manager, msg.Options{Machine: c})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(), manager.Close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestExplainedCostIsCounted: what messages cost two endpoints on a wire, as they count it, is what
// was said before.
func TestExplainedCostIsCounted(t *testing.T) {
	at := netip.MustParseAddrPort("192.0.2.2:7471")
	for _, protocol := range append([]rmsg.Protocol{rmsg.Auto}, Forced...) {
		for _, pieces := range [][]int{{64}, {500, 700}, {20_000}, {1 << 20}} {
			c := rmsg.Config{ // whatever time slots take
				Protocol: protocol, Patience: clock.Time(timeout.Scaled(60 * time.Second)),
			}
			e, err := Explain(c, pieces, 1024)
			if err != nil {
				t.Fatal(err)
			}
			network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
			if err != nil {
				t.Fatal(err)
			}
			a, b := openNode(t, network, 1, c), openNode(t, network, 2, c)
			var want Cost
			messages := e.Plans[len(e.Plans)-1].Last
			for i := range e.Plans {
				p := &e.Plans[i]
				n := p.Last - p.First + 1
				want.Frames += n * p.Frames
				want.Copied += n * p.Copied
				want.ReadBytes += n * p.ReadBytes
				want.WriteBytes += n * p.WriteBytes
			}
			if err := exchange(t, a, b, at, pieces, messages); err != nil {
				t.Fatal(err)
			}
			na, nb := a.Snapshot(), b.Snapshot()
			of := func(id rmsg.CounterID) int { return int(na[id] + nb[id]) }
			got := Cost{
				Frames: of(rmsg.SentFrames), ReadBytes: of(rmsg.BytesRead),
				WriteBytes: of(rmsg.BytesWritten),
				Copied:     of(rmsg.BytesCopiedOut) + of(rmsg.BytesCopiedIn),
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v by %v: counted %+v, said %+v", pieces, protocol, got, want)
			}
		}
	}
}

// exchange sends messages from a to b, each after the one before it has arrived and its receive
// posted before it, and closes the connection.
func exchange(
	t *testing.T, a, b *msg.Endpoint, at netip.AddrPort, pieces []int, messages int,
) error {
	l, err := b.Listen(at)
	if err != nil {
		return err
	}
	defer l.Close()
	ctx := t.Context()
	accepted := make(chan *msg.Conn, 1)
	go func() {
		c, _ := l.Accept(ctx) // nil with an error
		accepted <- c
	}()
	out, err := a.Dial(ctx, at)
	in := <-accepted
	if err != nil || in == nil {
		return errors.Join(err, errors.New("nobody is connected"))
	}
	size := 0
	for _, n := range pieces {
		size += n
	}
	for range messages {
		r := &msg.Receive{Buffers: [][]byte{make([]byte, size)}}
		s := &msg.Send{Buffers: split(pieces, size), Level: rmsg.Delivered}
		err := errors.Join(b.PostReceive(r), out.PostSend(s))
		if err != nil {
			return err
		}
		if err := errors.Join(r.Wait(ctx), s.Wait(ctx)); err != nil {
			return err
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- in.Close(ctx) }()
	return errors.Join(out.Close(ctx), <-closed)
}
