package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/leaktest"
)

// A clockwork drives devices in virtual time, one step after the other: a round
// of each, and when they are idle on to just before the next event, then to it.
type clockwork struct {
	clock   *sim.VirtualClock
	network *sim.Network
	devs    []*engine.Device
	before  bool
}

// step makes a step and reports whether anything may still happen.
func (c *clockwork) step() bool {
	worked := false
	for _, d := range c.devs {
		worked = d.Progress() || worked
	}
	if worked {
		return true
	}
	next, any := c.network.NextArrival()
	for _, d := range c.devs {
		if at, ok := d.NextDeadline(); ok && (!any || at < next) {
			next, any = at, true
		}
	}
	if c.before = !c.before && next > c.clock.Now()+1; c.before {
		next--
	}
	c.clock.AdvanceTo(next)
	return any
}

// TestDestroyAroundTimers destroys a QP before each step of a conversation that
// is all timers, those of lost packets and those of a receiver that is not
// ready. The QP is never heard of again, and its neighbour ends as it would.
func TestDestroyAroundTimers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults sim.Faults
		op     roce.Opcode
		want   roce.Status
		how    func(qp *engine.QP) error
	}{
		{"lost packets", sim.Faults{Drop: 1}, roce.OpWrite, roce.StatusRetryExcErr, destroy},
		{"receiver not ready", sim.Faults{}, roce.OpSend, roce.StatusRNRRetryExc, destroy},
		{"to ERR first", sim.Faults{Drop: 1}, roce.OpWrite, roce.StatusRetryExcErr, errorFirst},
		{"to RESET first", sim.Faults{}, roce.OpSend, roce.StatusRNRRetryExc, resetFirst},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := 1
			for at := 0; at < steps; at++ {
				steps = destroyAt(t, at, tt.faults, tt.op, tt.want, tt.how)
				if t.Failed() {
					t.Fatalf("destroyed before step %d of %d", at, steps)
				}
			}
			if steps < 15 {
				t.Errorf("only %d steps", steps)
			}
		})
	}
}

func destroy(qp *engine.QP) error {
	qp.Close()
	qp.Close()
	return nil
}

func errorFirst(qp *engine.QP) error {
	err := qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
	qp.Close()
	return err
}

func resetFirst(qp *engine.QP) error {
	err := qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState)
	qp.Close()
	return err
}

// destroyAt runs one conversation and returns how many steps it took.
func destroyAt(t *testing.T, at int, faults sim.Faults, op roce.Opcode, want roce.Status,
	how func(*engine.QP) error,
) (steps int) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, faults)
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	victim, other := newSide(t, devA), newSide(t, devA)
	for _, s := range []*side{victim, other} {
		peer := newSide(t, devB)
		for _, c := range [2]struct{ from, to *side }{{s, peer}, {peer, s}} {
			err := c.from.qp.Connect(t.Context(), c.from.end, c.to.end, engine.ConnectOptions{
				SGIDIndex: 1, RetryCnt: 5, RNRRetry: 5, Timeout: 10,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := s.qp.PostSend(&roce.SendWR{
			Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{s.mr.SGE(0, 64)},
			RemoteAddr: peer.mr.Addr(), RKey: peer.mr.RKey(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	work := clockwork{clock: clock, network: network, devs: []*engine.Device{devA, devB}}
	for more := true; more; steps++ {
		if steps == at {
			if err := how(victim.qp); err != nil {
				t.Error(err)
			}
			drain(t, victim.cq)
		}
		if more = work.step(); steps > 10_000 {
			t.Fatal("no end")
		}
	}
	if n := drain(t, victim.cq); n != 0 && at < steps {
		t.Errorf("%d completions of a QP that is no more", n)
	}
	var wcs [2]roce.Completion
	n, err := other.cq.Poll(wcs[:])
	if err != nil || n != 1 || wcs[0].Status != want {
		t.Errorf("the other QP: %d completions, %s, %v", n, wcs[0].Status, err)
	}
	if err := victim.cq.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(devA.Close(), devB.Close()); err != nil {
		t.Error(err)
	}
	return steps
}

// simPort is a name that does not collide with the method Port.
type simPort = sim.Port

// A brokenLink is a port of which one thing fails.
type brokenLink struct {
	*simPort
	mtu   int
	flush error
	wait  error
	close error
}

func (b *brokenLink) Port() engine.Port {
	p := b.simPort.Port()
	if b.mtu != 0 {
		p.MTU = b.mtu
	}
	return p
}

func (b *brokenLink) Flush() error { return errors.Join(b.flush, b.simPort.Flush()) }

func (b *brokenLink) Wait(timeout time.Duration) error {
	return errors.Join(b.wait, b.simPort.Wait(timeout))
}

func (b *brokenLink) Close() error { return errors.Join(b.close, b.simPort.Close()) }

// TestOpenAndCloseWithFaults opens and closes devices a thousand times, with
// each step failing. No goroutine and no descriptor is left.
func TestOpenAndCloseWithFaults(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	faults := []struct {
		name    string
		link    brokenLink
		options engine.Options
		opens   bool
		closes  bool
	}{
		{"nothing", brokenLink{}, engine.Options{}, true, true},
		{"direct", brokenLink{}, engine.Options{Direct: true}, true, true},
		{"options", brokenLink{}, engine.Options{Drivers: -1}, false, false},
		{
			"options and close",
			brokenLink{close: unix.EIO},
			engine.Options{CPUs: []int{-1}},
			false, false,
		},
		{"MTU", brokenLink{mtu: 100}, engine.Options{}, false, false},
		{"flush", brokenLink{flush: unix.ENODEV}, engine.Options{}, true, true},
		{"down", brokenLink{flush: unix.ENETDOWN}, engine.Options{}, true, true},
		{"wait", brokenLink{wait: unix.ENODEV}, engine.Options{Spin: 1}, true, true},
		{"close", brokenLink{close: unix.EIO}, engine.Options{}, true, false},
		{"all", brokenLink{
			flush: unix.ENODEV, wait: unix.ENODEV, close: unix.EIO,
		}, engine.Options{Spin: 1}, true, false},
	}
	before, running := openFiles(t), leaktest.Running()
	for i := range 1000 {
		tt := &faults[i%len(faults)]
		link := tt.link
		link.simPort = newPort(t, network, 0)
		tt.options.Clock = clock
		dev, err := engine.OpenLink(&link, &link, tt.options)
		if (err == nil) != tt.opens {
			t.Fatalf("%s: open: %v", tt.name, err)
		}
		if err != nil {
			continue
		}
		if err := useAndClose(t, dev); (err == nil) != tt.closes {
			t.Fatalf("%s: close: %v", tt.name, err)
		}
	}
	if after := filesLeft(t, before); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
	leaktest.None(t, running)
}

// useAndClose makes one of everything on a device, and closes the device with
// all of it in use.
func useAndClose(t *testing.T, dev *engine.Device) error {
	t.Helper()
	channel, err := dev.CreateCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dev.EventFD(); err != nil {
		t.Fatal(err)
	}
	dev.Events()
	channel.Events()
	cq, err := dev.CreateCQ(16, engine.OnChannel(channel))
	if err != nil {
		t.Fatal(err)
	}
	cq.Arm(false)
	// The link may be lost by now, and then there are no more QPs.
	pd := dev.AllocPD()
	qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4, MaxRecvWR: 4})
	if err != nil {
		return dev.Close()
	}
	err = qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1},
		roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
	if err == nil {
		end := engine.Endpoint{QPN: qp.QPN(), GID: dev.GIDs()[1]}
		err = qp.Connect(t.Context(), end, end, engine.ConnectOptions{SGIDIndex: 1})
	}
	if err == nil {
		err = qp.PostSend(&roce.SendWR{Opcode: roce.OpSend})
	}
	if err != nil && dev.Err() == nil {
		t.Fatal(err)
	}
	err = dev.Close()
	if again := fmt.Sprint(dev.Close()); again != fmt.Sprint(err) {
		t.Errorf("closed again: %s, then %s", fmt.Sprint(err), again)
	}
	return err
}
