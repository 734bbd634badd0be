package engine_test

import (
	"bytes"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// outlasting are options of a connection whose retries outlast an outage. The kernel takes a queue
// back and gives it out again after grace periods of RCU: that took 3 s on a busy host, and 10 s on
// one where 24 programs shared two processors with it. An end is excused while its own socket is
// made anew, not while that of its peer is.
var outlasting = engine.ConnectOptions{
	SGIDIndex: 1, Timeout: outlastingTimeout(timeout.Multiplier()),
}

// outlastingTimeout is the code of a local ACK timeout: eight of 1.07 s on a machine at rest. Each
// step doubles that, up to eight of 8.6 s.
func outlastingTimeout(multiplier int) uint8 {
	return min(17+uint8(bits.Len(uint(multiplier))), 21)
}

// setMTU changes the MTU of both ends of a pair.
func setMTU(t *testing.T, pair *vethpair.Pair, mtu int) {
	t.Helper()
	for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		in(t, pair, side, func(l netlink.Link) error { return netlink.LinkSetMTU(l, mtu) })
	}
}

// setQueues changes the number of queues of both ends, as ethtool -L does. An end with an XDP
// program receives on as many as the other one sends on, or on more.
func setQueues(t *testing.T, pair *vethpair.Pair, n uint32) {
	t.Helper()
	set := func(change func(*ethtool.Channels)) {
		t.Helper()
		for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
			in(t, pair, side, func(l netlink.Link) error {
				tool, err := ethtool.NewEthtool()
				if err != nil {
					return err
				}
				defer tool.Close()
				c, err := tool.GetChannels(l.Attrs().Name)
				if err != nil {
					return err
				}
				change(&c)
				_, err = tool.SetChannels(l.Attrs().Name, c)
				return err
			})
		}
	}
	set(func(c *ethtool.Channels) { c.RxCount = max(c.RxCount, n) })
	set(func(c *ethtool.Channels) { c.TxCount = n })
	set(func(c *ethtool.Channels) { c.RxCount = n })
}

// detachXDP detaches what runs on an end, as bpftool link detach does.
func detachXDP(t *testing.T, pair *vethpair.Pair, side vethpair.Side) {
	t.Helper()
	in(t, pair, side, func(l netlink.Link) error {
		id := l.Attrs().Xdp.ProgId
		var all link.Iterator
		defer all.Close()
		for all.Next() {
			info, err := all.Link.Info()
			if err == nil && uint32(info.Program) == id && id != 0 {
				return all.Link.Detach()
			}
		}
		return errors.Join(errors.New("no link attaches a program"), all.Err())
	})
}

// awaitEvent waits for an event of a device, and drops others.
func awaitEvent(t *testing.T, d *engine.Device, want roce.Event) {
	t.Helper()
	eventually(t, want.String(), func() bool {
		for e, ok := d.PollEvent(); ok; e, ok = d.PollEvent() {
			if e.Type == want {
				return true
			}
		}
		return false
	})
}

// awaitCount waits until a counter of a device has reached a value.
func awaitCount(t *testing.T, d *engine.Device, name string, want uint64) {
	t.Helper()
	eventually(t, name, func() bool { return counterOf(t, d, name) >= want })
}

// TestMTUIsRaised: an interface that takes longer packets than its socket has frames for has its
// socket made anew, and then takes connections of the larger path MTU. Those that there were go
// on.
func TestMTUIsRaised(t *testing.T) {
	t.Parallel() // it waits most of the time
	raiseMTU(t, 1)
}

// TestMTUIsRaisedOfDrivers: what they hand over to each other becomes longer, too.
func TestMTUIsRaisedOfDrivers(t *testing.T) {
	t.Parallel() // it waits most of the time
	raiseMTU(t, 2)
}

func raiseMTU(t *testing.T, drivers int) {
	o := engine.Options{Drivers: drivers, NoRebalance: true}
	pair, devs := vethPair(t, vethpair.Options{Queues: drivers}, [2]engine.Options{o, o})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connectWith(t, a, b, outlasting)
	exchange(t, a, b, regionSize)
	postWrites(t, a, b, 30, regionSize)
	setMTU(t, pair, 4200)
	a.wait(t, 30)
	for _, d := range devs {
		awaitCount(t, d, "link_error_recovery", uint64(drivers))
		awaitEvent(t, d, roce.EventPortActive)
		if got := d.ActiveMTU(); got != wire.MTU4096 {
			t.Errorf("active MTU %s", got)
		}
		if n := counterOf(t, d, "mtu_changes"); n != 1 {
			t.Errorf("%d changes of the MTU", n)
		}
	}
	exchange(t, a, b, regionSize)
	newSide(t, devs[0]) // so that of two drivers those of other numbers have c and d
	c, d := newSide(t, devs[0]), newSide(t, devs[1])
	connect(t, c, d)
	if got := c.qp.Query().PathMTU; got != wire.MTU4096 {
		t.Errorf("path MTU %s", got)
	}
	exchange(t, c, d, regionSize)
}

// TestMTUFalls: queue pairs whose path MTU is above that of the interface lose long packets, and
// go on when it is raised again; others go on at once, and new ones get what fits.
func TestMTUFalls(t *testing.T) {
	t.Parallel() // it waits most of the time
	pair, devs := vethPair(t, vethpair.Options{MTU: 4200}, [2]engine.Options{})
	long := [2]*side{newSide(t, devs[0]), newSide(t, devs[1])}
	short := [2]*side{newSide(t, devs[0]), newSide(t, devs[1])}
	// Seven retries of 4.3 s each.
	connectWith(t, long[0], long[1], engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
	connectWith(t, short[0], short[1],
		engine.ConnectOptions{SGIDIndex: 1, PathMTU: wire.MTU1024})
	setMTU(t, pair, 1500)
	for _, d := range devs {
		awaitCount(t, d, "mtu_changes", 1)
		if got := d.ActiveMTU(); got != wire.MTU1024 {
			t.Errorf("active MTU %s", got)
		}
	}
	exchange(t, short[0], short[1], regionSize)
	exchange(t, long[0], long[1], 1000)
	postWrites(t, long[0], long[1], 1, 8192)
	exchange(t, short[0], short[1], 1000)
	if n := long[0].qp.Snapshot().SendPosted; n != 1 {
		t.Errorf("%d requests wait, want the one with long packets", n)
	}
	late := [2]*side{newSide(t, devs[0]), newSide(t, devs[1])}
	connect(t, late[0], late[1])
	if got := late[0].qp.Query().PathMTU; got != wire.MTU1024 {
		t.Errorf("path MTU %s of a new connection", got)
	}
	setMTU(t, pair, 4200)
	long[0].wait(t, 1)
	exchange(t, long[0], long[1], regionSize)
}

// TestQueuesAreAdded: a device that takes all queues takes those that are new, too.
func TestQueuesAreAdded(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, drivers := range []int{1, 2} {
		t.Run(strconv.Itoa(drivers), func(t *testing.T) {
			xsktest.NeedRoot(t)
			pair, err := vethpair.New(vethpair.Options{Queues: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer pair.Close()
			setQueues(t, pair, 2)
			o := engine.Options{Drivers: drivers}
			devs := [2]*engine.Device{
				openIn(t, pair, vethpair.A, o), openIn(t, pair, vethpair.B, o),
			}
			a, b := newSide(t, devs[0]), newSide(t, devs[1])
			connectWith(t, a, b, outlasting)
			exchange(t, a, b, regionSize)
			postWrites(t, a, b, 30, regionSize)
			setQueues(t, pair, 4)
			a.wait(t, 30)
			for _, d := range devs {
				awaitCount(t, d, "link_error_recovery", uint64(drivers))
				if got := d.Link().Queues * drivers; got != 4 {
					t.Errorf("%d queues, want 4", got)
				}
			}
			exchange(t, a, b, regionSize)
			exchange(t, b, a, regionSize)
		})
	}
}

// TestQueuesInUseStay: the kernel does not take a queue away that has a socket, and a device whose
// queues somebody tried to take is not touched: no socket is made anew, no packet is lost.
func TestQueuesInUseStay(t *testing.T) {
	xsktest.NeedRoot(t)
	before := xsktest.Overruns(t)
	pair, devs := vethPair(t, vethpair.Options{MTU: 1500, Queues: 4}, [2]engine.Options{})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
	postWrites(t, a, b, 10, 64<<10)
	for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		in(t, pair, side, func(l netlink.Link) error {
			tool, err := ethtool.NewEthtool()
			if err != nil {
				return err
			}
			defer tool.Close()
			c, err := tool.GetChannels(l.Attrs().Name)
			if err != nil {
				return err
			}
			c.RxCount, c.TxCount = 2, 2
			if _, err = tool.SetChannels(l.Attrs().Name, c); !errors.Is(err, unix.EINVAL) {
				t.Errorf("the kernel says %v, want EINVAL", err)
			}
			return nil
		})
	}
	a.wait(t, 10)
	exchange(t, b, a, 64<<10)
	expectNoLossSince(t, before, devs[:]...)
	for _, d := range devs {
		if n := counterOf(t, d, "link_error_recovery"); n != 0 || d.Link().Queues != 4 {
			t.Errorf("%d sockets made anew, %d queues", n, d.Link().Queues)
		}
	}
}

// TestProgramIsDetached: who detaches the XDP program is noticed; with Options.Reattach it is
// attached again and connections go on.
func TestProgramIsDetached(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{{Reattach: true}, {}})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connectWith(t, a, b, outlasting)
	postWrites(t, a, b, 30, regionSize)
	detachXDP(t, pair, vethpair.A)
	awaitEvent(t, devs[0], roce.EventPortErr)
	awaitEvent(t, devs[0], roce.EventPortActive)
	a.wait(t, 30)
	exchange(t, a, b, regionSize)
	if n := counterOf(t, devs[0], "xdp_reattached"); n != 1 {
		t.Errorf("%d times attached again", n)
	}
	detachXDP(t, pair, vethpair.B)
	awaitEvent(t, devs[1], roce.EventPortErr)
	if n := counterOf(t, devs[1], "xdp_detached"); n != 1 {
		t.Errorf("%d times detached", n)
	}
	if err := devs[1].Err(); err != nil {
		t.Errorf("the device has ended: %v", err)
	}
}

// changesEnv is how many changes TestChangesInTransfer makes, for the long run.
const changesEnv = "XROCE_CHANGES"

// TestChangesInTransfer changes the MTU, the number of queues, what is attached, and whether the
// interface is up, at random while a transfer runs, and compares every byte.
func TestChangesInTransfer(t *testing.T) {
	changes := times(changesEnv, 6)
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{Queues: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	// Queues that a socket has cannot be taken away, so the others come and go.
	o := engine.Options{Reattach: true, Queues: []int{0, 1}, Partial: true}
	devs := [2]*engine.Device{openIn(t, pair, vethpair.A, o), openIn(t, pair, vethpair.B, o)}
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connectWith(t, a, b, outlasting)
	from := a.mr.Bytes()
	for n := range changes {
		a.see()
		for i := 0; i < len(from); i += 64 {
			from[i] = byte(rand.Uint32())
		}
		postWrites(t, a, b, 8, regionSize)
		side := []vethpair.Side{vethpair.A, vethpair.B}[rand.IntN(2)]
		switch n % 4 {
		case 0:
			setMTU(t, pair, []int{4200, 1500}[n/4%2])
		case 1:
			setQueues(t, pair, 2+rand.Uint32N(3))
		case 2:
			setLink(t, pair, side, false)
			setLink(t, pair, side, true)
		case 3:
			detached := counterOf(t, devs[side], "xdp_detached")
			detachXDP(t, pair, side)
			awaitCount(t, devs[side], "xdp_reattached", detached+1)
		}
		a.wait(t, 8)
		b.see()
		if !bytes.Equal(from, b.mr.Bytes()) {
			t.Fatalf("change %d: data differs", n)
		}
	}
	for i, d := range devs {
		if err := d.Err(); err != nil {
			t.Errorf("device %d has ended: %v", i, err)
		}
	}
	t.Logf("%d changes, %d sockets made anew, %d retransmits", changes,
		counterOf(t, devs[0], "link_error_recovery")+counterOf(t, devs[1], "link_error_recovery"),
		counterOf(t, devs[0], "retransmits"))
}

// TestRemovalEndsEveryMode deletes the interface under devices that run in each mode.
func TestRemovalEndsEveryMode(t *testing.T) {
	for _, o := range []engine.Options{{}, {Busy: true}, {Direct: true}} {
		pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{o, o})
		a, b := newSide(t, devs[0]), newSide(t, devs[1])
		connect(t, a, b)
		postWrites(t, a, b, 30, regionSize)
		in(t, pair, vethpair.A, netlink.LinkDel)
		removed := time.Now()
		for i, d := range devs {
			select {
			case <-d.Done():
			case <-time.After(timeout.Scaled(20 * time.Second)):
				t.Fatalf("%+v: device %d lives on", o, i)
			}
		}
		t.Logf("busy %t, direct %t: ended within %v", o.Busy, o.Direct, time.Since(removed))
		if !slices.ContainsFunc(devs[:], func(d *engine.Device) bool { return d.Failed() }) {
			t.Error("no device says so")
		}
	}
}
