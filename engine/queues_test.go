package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
)

// A firstLink does not receive what the device sends itself: on the simulated network a
// group address reaches it from the second link, which a switch would not do.
type firstLink struct{ *sim.Port }

func (l firstLink) Receive(dst []xsk.RxFrame) int {
	n, kept := l.Port.Receive(dst), 0
	for i := range dst[:n] {
		mac := l.Port.Port().MAC
		if [6]byte(dst[i].Head[6:]) == mac {
			l.Release(dst[i : i+1])
			continue
		}
		dst[kept] = dst[i]
		kept++
	}
	return kept
}

// A secondLink is the link of a second queue of a NIC, which has an address of its own on
// the simulated network: what that floods would come twice, so all that comes here is
// lost. What is for the device comes to its first link.
type secondLink struct {
	*sim.Port
	broken atomic.Bool
}

func (l *secondLink) Receive(dst []xsk.RxFrame) int {
	l.Release(dst[:l.Port.Receive(dst)])
	return 0
}

func (l *secondLink) Flush() error {
	if l.broken.Load() {
		return errors.New("the link is broken")
	}
	return l.Port.Flush()
}

// twoQueues makes a device with two queues and one with a single queue as its peer.
func twoQueues(t *testing.T, o engine.Options) (two, peer *engine.Device, links [2]xsk.Link) {
	t.Helper()
	o.Clock = engine.NewSystemClock()
	network := newNetwork(t, 1, o.Clock, sim.Faults{})
	first := newPort(t, network, 0)
	links = [2]xsk.Link{firstLink{first}, &secondLink{Port: newPort(t, network, 1)}}
	two, err := engine.OpenLinks(links[:], first, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := two.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Direct = false
	return two, openPort(t, network, 2, o), links
}

// drive has somebody wait on a device in direct mode for something that does not come.
func drive(t *testing.T, dev *engine.Device) {
	t.Helper()
	if !dev.Direct() {
		return
	}
	cq, err := dev.CreateCQ(1)
	if err != nil {
		t.Fatal(err)
	}
	var driver sync.WaitGroup
	driver.Go(func() {
		var wcs [1]roce.Completion
		if _, err := cq.Wait(t.Context(), wcs[:]); !errors.Is(err, context.Canceled) {
			t.Error("who drives:", err)
		}
	})
	t.Cleanup(driver.Wait)
}

// onQueues makes a side on each queue of a device.
func onQueues(t *testing.T, dev *engine.Device) (sides [2]*side) {
	t.Helper()
	for i := range sides {
		sides[i] = newSide(t, dev)
		if got := engine.QueueOf(sides[i].qp); got != i {
			t.Fatalf("QP %d is on queue %d", i, got)
		}
	}
	return sides
}

// TestTwoQueuesTalk has QPs of both queues of a device talk to a peer and to each other,
// with a driver for each queue and with one thread that drives both.
func TestTwoQueuesTalk(t *testing.T) {
	for _, o := range []engine.Options{{}, {Direct: true}} {
		dev, peer, links := twoQueues(t, o)
		drive(t, dev)
		for _, a := range onQueues(t, dev) {
			b := newSide(t, peer)
			connect(t, a, b)
			exchange(t, a, b, regionSize)
			exchange(t, b, a, 4097)
		}
		here := onQueues(t, dev)
		connect(t, here[0], here[1])
		exchange(t, here[0], here[1], regionSize)

		sum := func() (sent, received uint64) {
			for _, link := range links {
				stats, err := link.Stats()
				if err != nil {
					t.Fatal(err)
				}
				if stats.TxPackets == 0 {
					t.Error("a link has sent nothing")
				}
				sent, received = sent+stats.TxPackets, received+stats.RxPackets
			}
			return sent, received
		}
		// An acknowledgement of before may be late.
		eventually(t, "the counters are the sums of those of the links", func() bool {
			sent, received := sum()
			return counterOf(t, dev, "tx_packets") == sent &&
				counterOf(t, dev, "rx_packets") == received
		})
		if r := dev.Resources(10); r.Total.QP != 4 || len(r.QPs) != 4 {
			t.Errorf("%d QPs, %d rows", r.Total.QP, len(r.QPs))
		}
	}
}

// TestTwoQueuesGroup has members of a group on both queues and the sender on one, or on
// another device: a datagram reaches each member once.
func TestTwoQueuesGroup(t *testing.T) {
	dev, peer, _ := twoQueues(t, engine.Options{})
	group := groups[0]
	var members []*seat
	for i := range 4 {
		s := datagramSeat(t, dev, engine.QPInit{})
		if got := engine.QueueOf(s.qp); got != i%2 {
			t.Fatalf("QP %d is on queue %d", i, got)
		}
		s.attach(t, group.gid)
		members = append(members, s)
	}
	outside := datagramSeat(t, peer, engine.QPInit{})
	// Each is sent after the one before has reached all, so none comes twice.
	for number, sender := range []*seat{outside, members[0], members[1], outside} {
		for _, s := range members {
			s.recv(t, 0, 0, 100)
		}
		sender.multicast(t, group.gid, group.index, uint32(number))
		for _, s := range members {
			if s == sender {
				continue
			}
			wc := nextReceive(t, s)
			if wc.Imm != uint32(number) || wc.SrcQP != sender.qp.QPN() {
				t.Errorf("datagram %d: %+v", number, wc)
			}
		}
	}
	for i, s := range members {
		s.qp.Close()
		if n := dev.Resources(0).Total.QP; n != len(members)-i-1 {
			t.Errorf("%d QPs are left", n)
		}
	}
}

// nextReceive waits for the completion of a receive.
func nextReceive(t *testing.T, s *seat) roce.Completion {
	t.Helper()
	for {
		var wcs [1]roce.Completion
		if _, err := s.cq.Wait(t.Context(), wcs[:]); err != nil {
			t.Fatal(err)
		}
		if wcs[0].Opcode == roce.WCRecv {
			return wcs[0]
		}
	}
}

// TestTwoQueuesDeregister: it returns when neither queue touches the memory any more.
func TestTwoQueuesDeregister(t *testing.T) {
	dev, peer, _ := twoQueues(t, engine.Options{})
	here := onQueues(t, dev)
	for i, a := range here {
		unlock := engine.LockQueue(dev, i)
		done := make(chan error)
		spare, err := dev.RegMR(a.pd, make([]byte, 64), allAccess)
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- spare.Deregister() }()
		select {
		case <-done:
			t.Errorf("Deregister did not wait for queue %d", i)
		case <-time.After(20 * time.Millisecond):
		}
		unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, a := range here {
		b := newSide(t, peer)
		connect(t, a, b)
		for i := range b.mr.Bytes() {
			b.mr.Bytes()[i] = 1
		}
		postWrites(t, b, a, 30, regionSize)
		if err := a.mr.Deregister(); err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(a.mr.Bytes())
		time.Sleep(5 * time.Millisecond)
		if !slices.Equal(before, a.mr.Bytes()) {
			t.Error("memory was written after Deregister")
		}
	}
}

// TestHandoverFull stops the queue that packets are handed over to until there is no room for
// more: they are counted, and when it goes on connections do, too.
func TestHandoverFull(t *testing.T) {
	const writes, size = 200, 1 << 16
	dev, peer, _ := twoQueues(t, engine.Options{})
	var flooded, connected [2]*side
	for i := range 2 {
		flooded[i] = newSideOf(t, dev, engine.QPInit{Type: roce.TypeUC})
	}
	connected = onQueues(t, dev)
	flood := newSideOf(t, peer, engine.QPInit{Type: roce.TypeUC, MaxSendWR: writes})
	connect(t, flooded[1], flood)
	a, b := connected[1], newSide(t, peer)
	// While the queue is stopped nobody answers b: with its retries it waits for 4.3 s.
	connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 17})

	flooded[1].see()
	a.see()
	unlock := engine.LockQueue(dev, 1)
	postUnseen(t, flood, flooded[1], writes, size)
	flood.wait(t, writes)
	for end := time.Now().Add(soon); ; {
		if _, noRoom := engine.HandoverOf(dev, 0); noRoom > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("there is room for everything")
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	postUnseen(t, b, a, 1, size)
	unlock()
	b.wait(t, 1)
	frames, noRoom := engine.HandoverOf(dev, 0)
	if n := counterOf(t, dev, "handover_packets"); frames == 0 || n < frames {
		t.Errorf("handover_packets is %d, %d before", n, frames)
	}
	if n := counterOf(t, dev, "handover_no_room"); n < noRoom {
		t.Errorf("handover_no_room is %d, %d before", n, noRoom)
	}
	exchange(t, b, a, size)
}

// TestTwoQueuesEnd: when a link fails, and when the device is closed, the QPs of both
// queues end.
func TestTwoQueuesEnd(t *testing.T) {
	dev, peer, links := twoQueues(t, engine.Options{})
	here := onQueues(t, dev)
	for _, a := range here {
		connect(t, a, newSide(t, peer))
	}
	links[1].(*secondLink).broken.Store(true)
	postWrites(t, here[1], here[1], 1, 64)
	<-dev.Done()
	for i, a := range here {
		for end := time.Now().Add(soon); a.qp.State() != roce.StateErr && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
		}
		if s := a.qp.State(); s != roce.StateErr {
			t.Errorf("the QP on queue %d is in %s", i, s)
		}
	}
	if err := dev.Err(); err == nil || !dev.Failed() {
		t.Errorf("the device has failed with %v: %t", err, dev.Failed())
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	for i, link := range links {
		if err := link.Flush(); err == nil {
			t.Errorf("link %d is open", i)
		}
	}
}

// TestDirectCallsWake: who needs the progress lock for a moment gets it from those who
// sleep in CQ.Wait, and two who sleep do not wake each other.
func TestDirectCallsWake(t *testing.T) {
	_, dev, link := echoDevices(t, true)
	s := seatOn(t, dev, engine.QPInit{})
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 2 {
		cq, err := dev.CreateCQ(1)
		if err != nil {
			t.Fatal(err)
		}
		waiting.Go(func() {
			var wcs [1]roce.Completion
			if _, err := cq.Wait(ctx, wcs[:]); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	quiet(t, link)
	for range 20 {
		if err := s.qp.Init(rights); err != nil {
			t.Error(err)
		}
		s.qp.Query()
		seatOn(t, dev, engine.QPInit{}).qp.Close()
		if n := dev.Resources(10).Total.QP; n != 1 {
			t.Errorf("%d QPs", n)
		}
		if err := s.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState); err != nil {
			t.Error(err)
		}
	}
	quiet(t, link)
	cancel()
	waiting.Wait()
}
