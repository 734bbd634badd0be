package xsk_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// groupQueues is how many queues the groups of these tests have.
const groupQueues = 4

// inOrder is the queues of a device with so many.
func inOrder(n int) (queues []int) {
	for q := range n {
		queues = append(queues, q)
	}
	return queues
}

// fakeGroup opens a group on one end of a wire in memory, and on the other a socket on each queue.
func fakeGroup(t testing.TB, mtu int) (*xsk.Group, [groupQueues]*xsk.Socket) {
	t.Helper()
	return fakeGroupOf(t, mtu, func(*xsk.Config) {})
}

// fakeGroupOf is fakeGroup with other settings of the group.
func fakeGroupOf(
	t testing.TB, mtu int, set func(*xsk.Config),
) (*xsk.Group, [groupQueues]*xsk.Socket) {
	t.Helper()
	o := xsktest.KernelOptions{MTU: mtu, Queues: groupQueues}
	ka, kb := xsktest.NewWire(o, o)
	own := small(ka)
	set(&own)
	g, err := xsk.OpenGroup(own, inOrder(groupQueues))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Close(), g.Close()); err != nil {
			t.Error(err)
		}
		if l := ka.Leaks(); len(l) != 0 {
			t.Errorf("left open: %v", l)
		}
	})
	var peers [groupQueues]*xsk.Socket
	for q := range peers {
		cfg := small(kb)
		cfg.Queue = q
		if peers[q], err = xsk.Open(cfg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := peers[q].Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return g, peers
}

// TestGroup: what comes on any queue is received, that of a queue in order, and can be given back
// in any; what is sent leaves on the first queue. No chunk gets lost or to another queue.
func TestGroup(t *testing.T) {
	g, peers := fakeGroup(t, 4200)
	if i := g.Info(); i.Queue != 0 || i.Queues != groupQueues || i.TxFrames != 16 ||
		!i.MultiBuffer {
		t.Errorf("info %+v", i)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var sent, seen [groupQueues]uint32
	var held []xsk.RxFrame
	frames := make([]xsk.RxFrame, 5)
	for range 2000 {
		q := r.IntN(groupQueues)
		send(t, peers[q], uint32(q)<<24|sent[q], 60+r.IntN(4100))
		sent[q]++
		n := g.Receive(frames[:r.IntN(len(frames)+1)])
		for i := range frames[:n] {
			number, ok := mine(&frames[i])
			if from := number >> 24; !ok || number&0xffffff != seen[from] {
				t.Fatalf("frame %x, want %d of its queue", number, seen[from])
			}
			seen[number>>24]++
		}
		held = append(held, frames[:n]...)
		for len(held) > 6 {
			r.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
			g.Release(held[:4])
			held = slices.Clone(held[4:])
		}
	}
	g.Release(held)
	for n := g.Receive(frames); n > 0; n = g.Receive(frames) {
		g.Release(frames[:n])
	}
	for i, s := range g.Members() {
		owners, ok := s.Census()
		if !ok || owners["fill"] != smallRx || owners["app"] != 0 {
			t.Errorf("chunks of queue %d: %v", i, owners)
		}
	}
	l := lengths(16, 60, 4000)
	send(t, g, 0, l...)
	collect(t, peers[0], len(l), expect(t, 0, l...))
	st, err := g.Stats()
	if err != nil || st.RxPackets != 2000 || st.TxPackets != 16 || st.KernelFaults != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

// TestGroupIsFair: a queue that always has frames does not keep others waiting.
func TestGroupIsFair(t *testing.T) {
	g, peers := fakeGroup(t, 1500)
	frames := make([]xsk.RxFrame, 8)
	for range 3 * groupQueues {
		for q, p := range peers {
			for range 8 {
				send(t, p, uint32(q), 64)
			}
		}
		for turn := range groupQueues {
			n := g.Receive(frames)
			for i := range frames[:n] {
				if number, _ := mine(&frames[i]); number != uint32(turn) {
					t.Fatalf("frame of queue %d in turn %d", number, turn)
				}
			}
			if n != len(frames) {
				t.Fatalf("%d frames in turn %d", n, turn)
			}
			g.Release(frames)
		}
	}
}

func TestGroupWaits(t *testing.T) {
	g, peers := fakeGroup(t, 1500)
	frames := make([]xsk.RxFrame, 1)
	for _, p := range peers {
		send(t, p, 0, 64)
		if err := g.Wait(-1); err != nil {
			t.Fatal(err)
		}
		if n := g.Receive(frames); n != 1 {
			t.Fatalf("received %d frames", n)
		}
		g.Release(frames)
	}
	g.Wake()
	if err := g.Wait(-1); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Wait(-1); !errors.Is(err, xsk.ErrClosed) {
		t.Errorf("wait after close: %v", err)
	}
	g.Wake()
	g.Release(frames)
	if n := g.Receive(frames); n != 0 {
		t.Errorf("received %d frames after close", n)
	}
}

func TestGroupOpenFailsAtEachCall(t *testing.T) {
	const reached = 40
	for at := 1; ; at++ {
		calls := 0
		o := xsktest.KernelOptions{Queues: groupQueues, Hook: func(string) error {
			calls++
			if calls == at {
				return unix.EIO
			}
			return nil
		}}
		k, _ := xsktest.NewWire(o, xsktest.KernelOptions{})
		g, err := xsk.OpenGroup(small(k), inOrder(groupQueues))
		if err == nil {
			if calls >= at || at < reached {
				t.Fatalf("OpenGroup made %d calls, and did not fail at call %d", calls, at)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		var e *xsk.Error
		if !errors.Is(err, unix.EIO) || !errors.As(err, &e) {
			t.Errorf("call %d: %v", at, err)
		}
		if l := k.Leaks(); len(l) != 0 {
			t.Errorf("call %d: left open: %v", at, l)
		}
	}
}

func TestGroupErrors(t *testing.T) {
	for _, tc := range []struct {
		queues []int
		want   error
		text   string
	}{
		{nil, nil, "no queue"},
		{[]int{0, 1, 0}, nil, "queue 0 is in a group twice"},
		{[]int{-1}, nil, "queue -1"},
		{[]int{0, 1, 7}, unix.EINVAL, "queue 7"},
	} {
		k, _ := xsktest.NewWire(xsktest.KernelOptions{Queues: 2}, xsktest.KernelOptions{})
		_, err := xsk.OpenGroup(small(k), tc.queues)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) ||
			!strings.Contains(err.Error(), tc.text) {
			t.Errorf("%v: %v", tc.queues, err)
		}
		if l := k.Leaks(); len(l) != 0 {
			t.Errorf("%v: left open: %v", tc.queues, l)
		}
	}
}

// TestGroupMemory: by default the frames of many queues are not many times those of one, and a
// limit of memory holds for all together.
func TestGroupMemory(t *testing.T) {
	for _, tc := range []struct{ queues, rx, limit int }{
		{1, xsk.DefaultRxFrames, 0},
		{2, xsk.DefaultRxFrames, 0},
		{4, xsk.DefaultRxFrames / 2, 0},
		{16, xsk.DefaultRxFrames / 8, 0},
		{32, xsk.DefaultRxFrames / 16, 0},
		{4, xsk.DefaultRxFrames / 4, 64 << 20},
	} {
		o := xsktest.KernelOptions{Queues: tc.queues}
		if tc.limit != 0 {
			o.Limits = xsk.MemoryLimits{Locked: int64(tc.limit), Charged: xsk.Unlimited}
		}
		k, _ := xsktest.NewWire(o, xsktest.KernelOptions{})
		g, err := xsk.OpenGroup(xsk.Config{Interface: "fake0", Kernel: k, FillTarget: 1024},
			inOrder(tc.queues))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range g.Members() {
			want := tc.rx
			if i == 0 {
				want += g.Info().TxFrames
			}
			if s.Chunks() != want {
				t.Errorf("%+v: queue %d has %d chunks, want %d", tc, i, s.Chunks(), want)
			}
		}
		if limited := g.Info().Limited != ""; limited != (tc.limit != 0) {
			t.Errorf("%+v: limited %q", tc, g.Info().Limited)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestGroupNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	quiet := quietKernel{}
	quiet.Kernel, _ = xsktest.NewWire(xsktest.KernelOptions{Queues: 2}, xsktest.KernelOptions{})
	g, err := xsk.OpenGroup(small(&quiet), inOrder(2))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	rx := make([]xsk.RxFrame, 8)
	frame := make([]byte, 100)
	allocs := testing.AllocsPerRun(100, func() {
		g.Wake()
		if err := errors.Join(g.Wait(0), g.Wait(0)); err != nil {
			t.Fatal(err)
		}
		g.Release(rx[:g.Receive(rx)])
	})
	quiet.Inject(1, frame)
	if n := g.Receive(rx); n != 1 || allocs != 0 {
		t.Errorf("%v allocations in a round, %d frames", allocs, n)
	}
	g.Release(rx[:1])
}

// TestVethGroup: the kernel takes sockets on four queues that share frames, also frames of two
// chunks, and gives the queues back.
func TestVethGroup(t *testing.T) {
	for _, mtu := range []int{1500, 4200} {
		p := xsktest.NewPair(t, xsktest.Options{Queues: groupQueues, MTU: mtu, NoAddrs: true})
		for range 2 {
			vethGroup(t, p, mtu)
		}
	}
}

func vethGroup(t *testing.T, p *xsktest.Pair, mtu int) {
	t.Helper()
	var g *xsk.Group
	p.Do(xsktest.A, func() {
		var err error
		g, err = xsk.OpenGroup(xsk.Config{
			Interface: vethpair.IfName, RxFrames: 256, TxFrames: 64, FillTarget: 100,
			BindTimeout: timeout.Scaled(xsk.DefaultBindTimeout),
		}, inOrder(groupQueues))
		if err != nil {
			t.Fatal(err)
		}
	})
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	fds := make([]int, groupQueues)
	err := g.Sockets(func(queue, fd int) error { fds[queue] = fd; return nil })
	if err != nil {
		t.Fatal(err)
	}
	program := p.Attach(xsktest.A, fds...)
	defer program.Detach()
	var peers [groupQueues]*xsk.Socket
	for q := range peers {
		p.Do(xsktest.B, func() {
			peers[q], err = xsk.Open(xsk.Config{
				Interface: vethpair.IfName, Queue: q, RxFrames: 256, TxFrames: 64,
				BindTimeout: timeout.Scaled(xsk.DefaultBindTimeout),
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		defer peers[q].Close()
	}
	back := p.Attach(xsktest.B, peers[0].FD())
	defer back.Detach()
	g.RaiseFillTarget(200)
	for round := range uint32(20) {
		for _, peer := range peers {
			l := lengths(50, 60, mtu)
			send(t, peer, 100*round, l...)
			collect(t, g, len(l), expect(t, 100*round, l...))
		}
		l := lengths(50, 60, mtu)
		send(t, g, 100*round, l...)
		collect(t, peers[0], len(l), expect(t, 100*round, l...))
	}
	if st, err := g.Stats(); err != nil || st.RxDropped+st.RxRingFull+st.KernelFaults != 0 ||
		st.RxPackets != 4*20*50 || st.TxPackets != 20*50 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

// TestVethScatter: of a wire that scatters frames all come, on all queues.
func TestVethScatter(t *testing.T) {
	const frames = 1000
	p := xsktest.NewPair(t, xsktest.Options{
		Queues: groupQueues, NoAddrs: true, Scatter: vethpair.ScatterFrames,
	})
	a := openOn(t, p, xsktest.A, xsk.Config{})
	var g *xsk.Group
	p.Do(xsktest.B, func() {
		var err error
		g, err = xsk.OpenGroup(xsk.Config{
			Interface: vethpair.IfName, RxFrames: 1024, TxFrames: 64,
		}, inOrder(groupQueues))
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	fds := make([]int, groupQueues)
	if err := g.Sockets(func(queue, fd int) error { fds[queue] = fd; return nil }); err != nil {
		t.Fatal(err)
	}
	p.Attach(xsktest.B, fds...)
	l := lengths(frames, 60, 1500)
	send(t, a, 0, l...)
	seen := map[uint32]bool{}
	collect(t, g, frames, func(number uint32, frame []byte) {
		if want := make([]byte, l[number]); len(frame) == len(want) {
			writeFrame(want, number)
			seen[number] = string(want) == string(frame)
		}
	})
	if len(seen) != frames {
		t.Errorf("%d frames of %d", len(seen), frames)
	}
	for q, s := range g.Members() {
		if st, _ := s.Stats(); st.RxPackets == 0 {
			t.Errorf("nothing came on queue %d", q)
		}
	}
}
