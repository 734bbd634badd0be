package msg_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"xroce/engine/msg"
	"xroce/roce"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// fabricRails is how many interfaces each node has.
const fabricRails = 2

// TestFourNodesOfTwoRails: four namespaces with two interfaces each, all of which send to all
// others, messages of 0 to 1 MiB by every protocol, while one rail of one node after the other is
// taken down and up again: plugged out of its switch, or its interface set down. Each message
// arrives once, whole and in its order, by the rail that is left; then both carry again. In the
// end the devices have what they had.
func TestFourNodesOfTwoRails(t *testing.T) {
	t.Parallel() // it waits most of the time
	f := newFabric(t, fabricNodes, fabricRails)
	all := f.settle(fabricRails, msg.Options{
		Machine: rmsg.Config{Grace: roce.Time(timeout.Scaled(60 * time.Second))},
	})
	for n := range all {
		waitForRails(t, all, n, 0, true)
		waitForRails(t, all, n, 1, true)
	}
	var enough atomic.Bool
	var g errgroup.Group
	ctx := within(t)
	g.Go(func() error {
		for !enough.Load() {
			if err := talk(ctx, all, len(fabricSizes)); err != nil {
				return err
			}
		}
		return nil
	})
	for round := range 4 {
		node, rail := round%fabricNodes, round%fabricRails
		set := f.setUp
		if round >= 2 {
			set = f.setInterface
		}
		set(node, rail, false)
		waitForRails(t, all, node, rail, false)
		set(node, rail, true)
		waitForRails(t, all, node, rail, true)
	}
	enough.Store(true)
	must(t, g.Wait())
	allCarry(t, all)
	rest(t, all)
	again := uint64(0)
	for i, c := range all {
		n := c.end.Counters()
		t.Logf("node %d: %d rails lost, %d changes, %d items and %d parts again", i,
			n[rmsg.RailsLost], n[rmsg.Resumed], n[rmsg.SentAgain], n[rmsg.ChunksAgain])
		if n[rmsg.RailsLost] < fabricNodes || n[rmsg.Resumed] == 0 {
			t.Errorf("node %d: %d rails lost, %d changes", i, n[rmsg.RailsLost], n[rmsg.Resumed])
		}
		again += n[rmsg.SentAgain] + n[rmsg.ChunksAgain]
	}
	if again == 0 {
		t.Error("nothing was under way on any rail that was lost")
	}
	nothingLeft(t, all)
}

// allCarry has all talk until messages were read and written by each rail of each connection since
// now. A rail is taken by what else is under way, and few messages are written, not read: in one
// talk all of a connection may go by the same rail.
func allCarry(t *testing.T, all []*citizen) {
	t.Helper()
	usage := func() (list []rmsg.RailUsage) {
		for _, c := range all {
			for _, conn := range c.conns {
				if conn == nil {
					continue
				}
				for _, r := range conn.Rails() {
					list = append(list, r.Usage)
				}
			}
		}
		return list
	}
	ctx, before := within(t), usage()
	idle := func() int {
		for i, now := range usage() {
			if now.Read == before[i].Read || now.Written == before[i].Written {
				return i
			}
		}
		return -1
	}
	for idle() >= 0 {
		if err := talk(ctx, all, len(fabricSizes)); err != nil {
			t.Fatalf("rail %d, of those of all connections, carries nothing: %v", idle(), err)
		}
	}
}

// setInterface sets the interface of a node up or down, at the node itself.
func (f *fabric) setInterface(node, rail int, up bool) {
	f.t.Helper()
	f.nodes[node].do(f.t, func() error {
		l, err := netlink.LinkByName(fmt.Sprint("xr", rail))
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(l)
		}
		return netlink.LinkSetDown(l)
	})
}

// waitForRails waits until a rail of a node is up, or down, at both ends of all its connections.
func waitForRails(t *testing.T, all []*citizen, node, rail int, up bool) {
	t.Helper()
	ctx := within(t)
	for i, c := range all {
		for j, conn := range c.conns {
			if conn == nil || i != node && j != node {
				continue
			}
			for conn.Rails()[rail].Up != up {
				if ctx.Err() != nil || conn.Err() != nil {
					t.Fatalf("rail %d of node %d to %d is not up %v: %v", rail, i, j, up,
						conn.Err())
				}
				time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
			}
		}
	}
}

// nothingLeft closes the endpoints, and wants what devices have to be as it was without them.
func nothingLeft(t *testing.T, all []*citizen) {
	t.Helper()
	var g errgroup.Group
	for _, c := range all {
		g.Go(c.end.Close)
	}
	must(t, g.Wait())
	for i, c := range all {
		for rail, dev := range c.devs {
			if now := dev.Resources(0).Total; now != c.before[rail] {
				t.Errorf("node %d, rail %d: %+v, before %+v", i, rail, now, c.before[rail])
			}
		}
	}
}
