package msg_test

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// fabricNodes is how many nodes talk to each other.
const fabricNodes = 4

// A citizen is a node of a fabric: an endpoint that is connected to each other one.
type citizen struct {
	devs   []*engine.Device // a rail each
	before []engine.ResourceCount
	end    *msg.Endpoint
	conns  [fabricNodes]*msg.Conn
	peers  map[*msg.Conn]int
}

// patience is a manager of queue pairs that wait eight times 0.5 s for a peer that is unplugged or
// not scheduled, and longer the more limits grow: the kernel notes that a wire is back in a work
// queue (net/core/link_watch.c), on a host that is busy some seconds later. Those of several rails
// are given up sooner, by themselves.
func patience(rails int) cm.Options {
	o := quick
	if rails == 1 {
		o.Machine.PacketLifeTime += uint8(bits.Len(uint(min(timeout.Multiplier(), 8))) - 1)
		o.Linger = -1 // endpoints have waited
	}
	return o
}

// settle opens an endpoint on each node, on its interfaces of so many rails, and connects each
// with each other.
func (f *fabric) settle(rails int, o msg.Options) []*citizen {
	t := f.t
	t.Helper()
	var all []*citizen
	for _, p := range f.nodes {
		c := &citizen{peers: map[*msg.Conn]int{}}
		var on []msg.Rail
		for rail := range rails {
			var dev *engine.Device
			p.do(t, func() (err error) {
				dev, err = engine.Open(fmt.Sprint("xr", rail), engine.Options{})
				return err
			})
			t.Cleanup(func() { must(t, dev.Close()) })
			manager, err := cm.Open(dev, patience(rails))
			must(t, err)
			t.Cleanup(func() { must(t, manager.Close()) })
			on = append(on, msg.Rail{Device: dev, Manager: manager})
			c.devs = append(c.devs, dev)
			c.before = append(c.before, dev.Resources(0).Total)
		}
		var err error
		c.end, err = msg.OpenRails(o, on...)
		must(t, err)
		t.Cleanup(func() { must(t, c.end.Close()) })
		all = append(all, c)
	}
	for i, a := range all {
		var at []netip.AddrPort
		for rail := range rails {
			at = append(at, netip.AddrPortFrom(addrOf(i, rail), 7471))
		}
		l, err := a.end.Listen(at[0], at[1:]...)
		must(t, err)
		t.Cleanup(func() { must(t, l.Close()) }) // further rails come as long as it listens
		for j := range i {
			var g errgroup.Group
			g.Go(func() (err error) {
				a.conns[j], err = l.Accept(within(t))
				return err
			})
			all[j].conns[i], err = all[j].end.Dial(within(t), at[0], at[1:]...)
			must(t, err)
			must(t, g.Wait())
			a.peers[a.conns[j]], all[j].peers[all[j].conns[i]] = j, i
		}
	}
	return all
}

// fabricSizes are lengths of messages around those where protocols change.
var fabricSizes = []int{
	0, 1, 64, 1000, 1024, 1025, 4096, 8192, 8193, 32_768, 65_536, 65_537, 196_608, 196_609, 1 << 20,
}

// noise is what messages are cut from: to make each anew is most of the work of this test where
// the race detector looks at every byte.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it never fails
	return b
})

// text is message n from one node to another: its length and its bytes follow from these.
func text(from, to, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(from<<8|to), uint64(n)))
	size := fabricSizes[r.IntN(len(fabricSizes))]
	if n < len(fabricSizes) {
		size = fabricSizes[n]
	}
	at := r.IntN(len(noise()) - size)
	return bytes.Clone(noise()[at : at+size])
}

// talk has each node send so many messages to each other one, some of them by a forced protocol,
// and receive those of all, by two kinds of tag from any source. Of each peer those of a kind
// must come in their order, each once, and byte for byte.
func talk(ctx context.Context, all []*citizen, messages int) error {
	g, ctx := errgroup.WithContext(ctx)
	for i, c := range all {
		for j, conn := range c.conns {
			if conn != nil {
				g.Go(func() error { return tell(ctx, conn, i, j, messages) })
			}
		}
		for kind := range uint64(2) {
			g.Go(func() error { return c.listen(ctx, i, kind, messages) })
		}
	}
	return g.Wait()
}

// tell sends messages, of which four are under way at once.
func tell(ctx context.Context, conn *msg.Conn, from, to, messages int) error {
	var under [4]msg.Send
	for n := range messages + len(under) {
		s := &under[n%len(under)]
		if n >= len(under) {
			if err := s.Wait(ctx); err != nil {
				return fmt.Errorf("message %d from %d to %d by %v: %w", n-len(under), from, to,
					s.Choice, err)
			}
		}
		if n >= messages {
			continue
		}
		s.Buffers, s.Tag = [][]byte{text(from, to, n)}, uint64(n)
		s.Protocol, s.Level = rmsg.Auto, rmsg.Level(n%4)
		if n%3 == 0 {
			s.Protocol = []rmsg.Protocol{rmsg.Get, rmsg.Put, rmsg.Fragments}[n/3%3]
		}
		if err := conn.PostSend(s); err != nil {
			return err
		}
	}
	return nil
}

// listen receives the messages of all peers whose number is of a kind: even or odd.
func (c *citizen) listen(ctx context.Context, me int, kind uint64, messages int) error {
	var next [fabricNodes]int
	buf := make([]byte, 1<<20)
	for range (fabricNodes - 1) * ((messages + 1 - int(kind)) / 2) {
		r := &msg.Receive{Buffers: [][]byte{buf}, Tag: kind, Mask: 1}
		if err := c.end.PostReceive(r); err != nil {
			return err
		}
		if err := r.Wait(ctx); err != nil {
			return fmt.Errorf("node %d, which has %v of kind %d: %w", me, next, kind, err)
		}
		from := c.peers[r.From]
		n := 2*next[from] + int(kind)
		next[from]++
		want := text(from, me, n)
		if r.Tag != uint64(n) || r.Whole != len(want) || !bytes.Equal(buf[:r.Length], want) {
			return fmt.Errorf("node %d: message %d of node %d is number %d of %d bytes, by %v",
				me, n, from, r.Tag, r.Whole, r.Protocol)
		}
	}
	return nil
}

// rest wants nothing left of messages that were received.
func rest(t *testing.T, all []*citizen) {
	t.Helper()
	for i, c := range all {
		if u := c.end.Usage(); u.Unexpected != 0 || u.Reading != 0 || u.Receives != 0 {
			t.Errorf("node %d: %+v", i, u)
		}
	}
}

// TestFourNodes: four namespaces at a switch, of which each sends to all others and receives from
// all at the same time, messages of 0 to 1 MiB by every protocol: on a good network, on one that
// loses frames, on one that loses and swaps them if the kernel has that, and while one is plugged
// out and in.
func TestFourNodes(t *testing.T) {
	t.Parallel() // it waits most of the time
	t.Run("plain", func(t *testing.T) {
		all := newFabric(t, fabricNodes, 1).settle(1, msg.Options{})
		must(t, talk(within(t), all, 2*len(fabricSizes)))
		rest(t, all)
	})
	t.Run("loss", func(t *testing.T) {
		f := newFabric(t, fabricNodes, 1)
		all := f.settle(1, msg.Options{})
		f.lose(200)
		must(t, talk(within(t), all, len(fabricSizes)))
		rest(t, all)
		again := uint64(0)
		for _, c := range all {
			again += count(t, c.devs[0], "retransmits")
		}
		if again == 0 {
			t.Error("nothing was lost")
		}
	})
	t.Run("netem", func(t *testing.T) {
		f := newFabric(t, fabricNodes, 1)
		if err := f.reorder(); err != nil {
			t.Skipf("SKIPPED, needs CONFIG_NET_SCH_NETEM: %v", err)
		}
		all := f.settle(1, msg.Options{})
		must(t, talk(within(t), all, len(fabricSizes)))
		rest(t, all)
	})
	t.Run("plugged out and in", func(t *testing.T) {
		f := newFabric(t, fabricNodes, 1)
		all := f.settle(1, msg.Options{})
		g, ctx := errgroup.WithContext(within(t))
		var plugged atomic.Bool // for good
		g.Go(func() error {
			for !plugged.Load() {
				if err := talk(ctx, all, 3*len(fabricSizes)); err != nil {
					return err
				}
			}
			return nil
		})
		for n := range 3 {
			f.setUp(n, 0, false)
			before := timeouts(t, all)
			for ctx.Err() == nil && timeouts(t, all) == before {
				time.Sleep(time.Millisecond) // until one has noticed
			}
			f.setUp(n, 0, true)
		}
		plugged.Store(true)
		must(t, g.Wait())
		rest(t, all)
	})
}

// timeouts is how often any node got no answer in time: one that is unplugged may have nothing
// under way, and then it is the others who notice.
func timeouts(t *testing.T, all []*citizen) (n uint64) {
	t.Helper()
	for _, c := range all {
		n += count(t, c.devs[0], "local_ack_timeout_err")
	}
	return n
}

// count is a counter of a device.
func count(t *testing.T, dev *engine.Device, name string) uint64 {
	t.Helper()
	list, err := dev.Counters()
	must(t, err)
	for _, c := range list {
		if c.Name == name {
			return c.Value
		}
	}
	t.Fatalf("there is no counter %s", name)
	return 0
}
