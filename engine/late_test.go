package engine_test

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
)

// A lateLink is a port whose driver is not scheduled at the worst moments, or whose
// device takes nothing.
type lateLink struct {
	*simPort
	clock   *sim.VirtualClock
	late    roce.Time // the driver stops so long inside of the next Flush, once
	race    roce.Time // and so long behind a Receive that found nothing, once
	stuck   bool      // the device takes nothing
	down    bool      // the interface is down
	pending bool      // frames wait for the device
	full    bool      // there is always one more burst of noise to receive
	noise   int       // frames of it that were received

	waiting chan struct{} // gets a value when the driver falls asleep, may be nil
	resume  chan struct{} // and it sleeps until this is closed, by wakeUp
	wakeUp  func()
}

func (l *lateLink) Flush() error {
	l.clock.AdvanceTo(l.clock.Now() + l.late)
	l.late = 0
	switch l.pending = l.down || l.stuck; {
	case l.down:
		return unix.ENETDOWN
	case l.stuck:
		return nil
	}
	return l.simPort.Flush()
}

func (l *lateLink) Pending() bool { return l.pending }

func (l *lateLink) Receive(dst []xsk.RxFrame) int {
	if l.full {
		for i := range dst {
			dst[i] = xsk.RxFrame{Head: make([]byte, 60)}
		}
		l.noise += len(dst)
		return len(dst)
	}
	n := l.simPort.Receive(dst)
	if n == 0 {
		l.clock.AdvanceTo(l.clock.Now() + l.race)
		l.race = 0
	}
	return n
}

func (l *lateLink) Release(frames []xsk.RxFrame) {
	if !l.full {
		l.simPort.Release(frames)
	}
}

func (l *lateLink) Wait(time.Duration) error {
	select {
	case l.waiting <- struct{}{}:
	default:
	}
	<-l.resume
	return nil
}

// latePair is a device on a lateLink, in direct mode or driven in the background, one
// in direct mode, and a connection between them.
type latePair struct {
	t       *testing.T
	clock   *sim.VirtualClock
	network *sim.Network
	link    *lateLink
	devs    [2]*engine.Device
	a, b    *side
}

// lateTimeout is the code of the local ACK timeout, and what it means; lateDelay is
// how long a packet is under way.
const (
	lateTimeout   = 10
	lateTimeoutIs = 4096 << lateTimeout * roce.Nanosecond
	lateDelay     = 10 * roce.Microsecond
)

func newLatePair(t *testing.T, direct bool) *latePair {
	t.Helper()
	l := &latePair{t: t, clock: &sim.VirtualClock{}}
	l.network = newNetwork(t, 1, l.clock, sim.Faults{Delay: lateDelay})
	l.link = &lateLink{simPort: newPort(t, l.network, 0), clock: l.clock}
	if !direct {
		l.link.waiting, l.link.resume = make(chan struct{}, 1), make(chan struct{})
		l.link.wakeUp = sync.OnceFunc(func() { close(l.link.resume) })
	}
	var err error
	l.devs[0], err = engine.OpenLink(l.link, l.link, engine.Options{
		Clock: l.clock, Direct: direct, Spin: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !direct {
			l.link.wakeUp()
		}
		if err := l.devs[0].Close(); err != nil {
			t.Error(err)
		}
	})
	l.devs[1] = openPort(t, l.network, 1, engine.Options{Clock: l.clock, Direct: true})
	l.a, l.b = l.connect()
	return l
}

// connect makes one more connection.
func (l *latePair) connect() (a, b *side) {
	l.t.Helper()
	a, b = newSide(l.t, l.devs[0]), newSide(l.t, l.devs[1])
	connectWith(l.t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: lateTimeout, RetryCnt: 3})
	return a, b
}

// pass lets time pass in which nobody does anything.
func (l *latePair) pass(d roce.Time) { l.clock.AdvanceTo(l.clock.Now() + d) }

// drive lets a device do all that there is to do now.
func (l *latePair) drive(i int) {
	for l.devs[i].Progress() {
		continue
	}
}

// cut lets nothing pass to the peer, or all again.
func (l *latePair) cut(broken bool) {
	l.t.Helper()
	f := sim.Faults{Delay: lateDelay, Blocked: broken}
	from, to := l.devs[0].Port().MAC, l.devs[1].Port().MAC
	if err := l.network.SetDirection(from, to, f); err != nil {
		l.t.Fatal(err)
	}
}

// failBy drives the late device from deadline to deadline until its request fails,
// which must be at a time at the latest.
func (l *latePair) failBy(end roce.Time) {
	l.t.Helper()
	var wcs [1]roce.Completion
	for {
		l.drive(0)
		if n, _ := l.a.cq.Poll(wcs[:]); n == 1 {
			break
		}
		next, ok := l.devs[0].NextDeadline()
		if !ok || next > end {
			l.t.Fatalf("no end by %d: %v", end, l.a.qp.Snapshot())
		}
		l.clock.AdvanceTo(next)
	}
	if wcs[0].Status != roce.StatusRetryExcErr {
		l.t.Errorf("it ended with %s", wcs[0].Status)
	}
}

// settle lets both go on until what was sent has been answered.
func (l *latePair) converge() {
	for range 4 {
		l.pass(lateDelay)
		l.drive(1)
		l.drive(0)
	}
}

// expect checks what the device on the late link has counted.
func (l *latePair) expect(timeouts, retransmits uint64) {
	l.t.Helper()
	c := counters(l.t, l.devs[0])
	if c["local_ack_timeout_err"] != timeouts || c["retransmits"] != retransmits {
		l.t.Errorf("%d timeouts and %d retransmits, want %d and %d", c["local_ack_timeout_err"],
			c["retransmits"], timeouts, retransmits)
	}
}

// expectDone checks that a side has so many completions, all of success.
func (l *latePair) expectDone(s *side, n int) {
	l.t.Helper()
	got := make([]roce.Completion, n+1)
	m, err := s.cq.Poll(got)
	if err != nil || m != n {
		l.t.Errorf("%d completions, want %d: %v; %v", m, n, err, s.qp.Snapshot())
	}
	for _, wc := range got[:m] {
		if wc.Status != roce.StatusSuccess {
			l.t.Errorf("work request %d: %s", wc.WRID, wc.Status)
		}
	}
}

// start posts what a and another connection send, and returns when it has left and,
// in the background, the loop sleeps.
func (l *latePair) start(c, d *side) {
	l.t.Helper()
	postWrites(l.t, l.a, l.b, 3, 9000)
	postWrites(l.t, c, d, 1, 64)
	if l.link.waiting == nil {
		l.drive(0)
		return
	}
	for {
		// It sleeps when it found nothing to do for a nanosecond.
		l.pass(1)
		select {
		case <-l.link.waiting:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// TestLateLoopLooksAtAnswersFirst has the answers of several connections lie in the
// ring, behind several bursts of other frames, while all their timers run out. In
// direct mode and in the background nothing is sent again.
func TestLateLoopLooksAtAnswersFirst(t *testing.T) {
	for _, direct := range []bool{true, false} {
		l := newLatePair(t, direct)
		c, d := l.connect()
		for range 2 {
			a, b := l.connect()
			postWrites(t, b, a, 1, 4096*200)
		}
		l.drive(1)
		if n := l.network.Counts().Sent; n < 400 {
			t.Fatalf("only %d frames are in front", n)
		}
		l.start(c, d)
		l.pass(lateDelay)
		l.drive(1)
		l.pass(10 * lateTimeoutIs)
		if direct {
			l.devs[0].Progress()
			l.expectDone(l.a, 3)
			l.expectDone(c, 1)
		} else {
			l.link.wakeUp()
			l.a.wait(t, 3)
			c.wait(t, 1)
		}
		l.expect(0, 0)
	}
}

// TestStopBetweenRingAndClock stops the loop where it has found the ring empty and
// looks at the clock next. The answer comes meanwhile.
func TestStopBetweenRingAndClock(t *testing.T) {
	l := newLatePair(t, true)
	postWrites(t, l.a, l.b, 1, 64)
	l.drive(0)
	l.pass(lateDelay)
	l.drive(1)
	l.link.race = 2 * lateTimeoutIs
	l.devs[0].Progress()
	l.expectDone(l.a, 1)
	l.expect(0, 0)
}

// TestTimerRunsFromWhenPacketsLeft stops the loop between writing packets and giving
// them to the device, for less and for more than the timeout. The peer gets all of
// the timeout to answer, not what is left of it; then the packet is sent again.
func TestTimerRunsFromWhenPacketsLeft(t *testing.T) {
	for _, late := range []roce.Time{lateTimeoutIs - 1, lateTimeoutIs, 5 * lateTimeoutIs / 2} {
		for _, answered := range []bool{true, false} {
			l := newLatePair(t, true)
			if !answered {
				l.cut(true)
			}
			postWrites(t, l.a, l.b, 1, 64)
			l.link.late = late
			l.drive(0)
			if !answered {
				l.pass(lateTimeoutIs - 1)
				l.drive(0)
				l.expect(0, 0)
				l.cut(false)
				l.pass(1)
				l.drive(0)
				l.expect(1, 1)
				l.converge()
				l.expectDone(l.a, 1)
				continue
			}
			l.converge()
			l.expectDone(l.a, 1)
			l.expect(0, 0)
		}
	}
}

// TestTimerWaitsForTheDevice has a device take nothing for a while. What has not left
// is not lost; but when nothing ever leaves, the connection fails, after four times
// the timeout for each try at the latest.
func TestTimerWaitsForTheDevice(t *testing.T) {
	l := newLatePair(t, true)
	postWrites(t, l.a, l.b, 1, 64)
	l.link.stuck = true
	l.drive(0)
	for range 3 {
		l.pass(lateTimeoutIs)
		l.drive(0)
	}
	l.expect(0, 0)
	l.link.stuck = false
	l.converge()
	l.expectDone(l.a, 1)
	l.expect(0, 0)

	postWrites(t, l.a, l.b, 1, 64)
	l.link.stuck = true
	end := l.clock.Now() + 4*4*lateTimeoutIs // RETRY_CNT is 3
	l.failBy(end)
	l.expect(4, 3)
}

// TestTimerRunsWhileTheInterfaceIsDown: the peer is out of reach then, as when it is
// gone, and it takes no longer to hear of that.
func TestTimerRunsWhileTheInterfaceIsDown(t *testing.T) {
	l := newLatePair(t, true)
	l.link.down = true
	postWrites(t, l.a, l.b, 1, 64)
	l.drive(0)
	l.failBy(l.clock.Now() + 4*lateTimeoutIs)
	l.expect(4, 3)
}

// TestLateLoopCostsOneTry has the loop be late again and again, by more than all tries
// together take, while nobody answers. Each time costs one try at most, and once the
// peer is back all is well.
func TestLateLoopCostsOneTry(t *testing.T) {
	l := newLatePair(t, true)
	l.cut(true)
	postWrites(t, l.a, l.b, 1, 64)
	l.drive(0)
	timeouts := uint64(0)
	for range 3 {
		l.pass(20 * lateTimeoutIs)
		l.drive(0)
		now := counters(t, l.devs[0])["local_ack_timeout_err"]
		if now > timeouts+1 {
			t.Errorf("%d timeouts of one late loop", now-timeouts)
		}
		timeouts = now
	}
	l.cut(false)
	l.pass(lateTimeoutIs)
	l.drive(0)
	l.converge()
	l.expectDone(l.a, 1)
}

// TestFloodDoesNotHoldTimers receives noise without end: a timer that has run out
// waits for so much of it and no more.
func TestFloodDoesNotHoldTimers(t *testing.T) {
	l := newLatePair(t, true)
	l.cut(true)
	postWrites(t, l.a, l.b, 1, 64)
	l.drive(0)
	l.pass(lateTimeoutIs)
	l.link.full = true
	l.devs[0].Progress()
	if l.link.noise < 12288 || l.link.noise > 1<<14+128 {
		t.Errorf("%d frames were received first", l.link.noise)
	}
	l.devs[0].Progress() // after one that received: then direct mode sends
	l.expect(1, 1)
	// Nothing is overdue now: a round is a round again.
	l.link.noise = 0
	if l.devs[0].Progress(); l.link.noise > 64 {
		t.Errorf("%d frames in a round", l.link.noise)
	}
	l.link.full = false
}

// TestLateLoopDoesNotAllocate counts what the way through the late loop allocates.
func TestLateLoopDoesNotAllocate(t *testing.T) {
	l := newLatePair(t, true)
	var wcs [4]roce.Completion
	wr := roce.SendWR{
		Opcode: roce.OpWrite, Flags: roce.SendSignaled,
		SGList: []roce.SGE{l.a.mr.SGE(0, 9000)}, RemoteAddr: l.b.mr.Addr(), RKey: l.b.mr.RKey(),
	}
	round := func() {
		if err := l.a.qp.PostSend(&wr); err != nil {
			t.Error(err)
		}
		l.link.late = 2 * lateTimeoutIs
		l.drive(0)
		l.pass(lateDelay)
		l.drive(1)
		l.pass(10 * lateTimeoutIs)
		l.drive(0)
		if n, err := l.a.cq.Poll(wcs[:]); n != 1 || err != nil || wcs[0].Status != 0 {
			t.Errorf("%d completions, %v, %s", n, err, wcs[0].Status)
		}
	}
	for range 20 { // fill the free lists
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
	l.expect(0, 0)
}
