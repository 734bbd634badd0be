package xsk_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"xroce/xsk"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// The tests of this file and its neighbours on a veth pair:
//
//	namespace a                    namespace b
//	 socket a -- xr0 ==== veth ==== xr0 -- socket b
//
// Each end redirects every frame to its socket. Frames of the tests have a local
// experimental EtherType; frames that the kernels send are skipped by it.
const etherType = 0x88b5

// openOn opens a socket on one end and closes it with the test.
func openOn(t testing.TB, p *xsktest.Pair, side vethpair.Side, cfg xsk.Config) *xsk.Socket {
	t.Helper()
	cfg.Interface = p.End(side).Name
	if cfg.RxFrames == 0 {
		cfg.RxFrames = 2048
	}
	if cfg.TxFrames == 0 {
		cfg.TxFrames = 512
	}
	if cfg.BindTimeout == 0 {
		cfg.BindTimeout = timeout.Scaled(xsk.DefaultBindTimeout)
	}
	var s *xsk.Socket
	p.Do(side, func() {
		var err error
		if s, err = xsk.Open(cfg); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// wire opens a socket on both ends of a new pair and attaches the programs.
func wire(t testing.TB, o xsktest.Options, cfg xsk.Config) (p *xsktest.Pair, a, b *xsk.Socket) {
	t.Helper()
	p = xsktest.NewPair(t, o)
	a, b = openOn(t, p, xsktest.A, cfg), openOn(t, p, xsktest.B, cfg)
	p.Attach(xsktest.A, a.FD())
	p.Attach(xsktest.B, b.FD())
	return p, a, b
}

// writeFrame fills frame with the headers, the number and bytes that depend on
// the number.
func writeFrame(frame []byte, number uint32) {
	copy(frame, "\x02\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x0a")
	binary.BigEndian.PutUint16(frame[12:], etherType)
	binary.BigEndian.PutUint32(frame[14:], number)
	src := rand.NewPCG(uint64(number), 1)
	b := frame[18:]
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, src.Uint64())
	}
	for i := range b {
		b[i] = byte(src.Uint64())
	}
}

// mine reports whether a received frame is of the tests, and its number.
func mine(f *xsk.RxFrame) (number uint32, ok bool) {
	if len(f.Head) < 18 || binary.BigEndian.Uint16(f.Head[12:]) != etherType {
		return 0, false
	}
	return binary.BigEndian.Uint32(f.Head[14:]), true
}

// join returns the whole frame in one slice.
func join(f *xsk.RxFrame) []byte { return append(bytes.Clone(f.Head), f.Tail...) }

// send queues one frame for each length and flushes, numbering from first on. It
// waits for room while there is none.
func send(t testing.TB, s xsk.Link, first uint32, lengths ...int) {
	t.Helper()
	var frame [1]xsk.TxFrame
	for i, n := range lengths {
		waitFor(t, "a free transmit frame", func() bool {
			if s.Reserve(frame[:]) == 1 {
				return true
			}
			flush(t, s)
			return false
		})
		writeFrame(frame[0].Data[:n], first+uint32(i))
		frame[0].Len = n
		s.Transmit(frame[:])
	}
	waitFor(t, "an empty transmit ring", func() bool {
		flush(t, s)
		return !s.Pending()
	})
}

func flush(t testing.TB, s xsk.Link) {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// testTimeout is how long a test waits for what must happen.
var testTimeout = timeout.Scaled(10 * time.Second)

// waitFor calls f until it returns true.
func waitFor(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !f(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", testTimeout, what)
		}
	}
}

// collect receives until it has n frames of the tests and gives each to check
// before it is released.
func collect(t testing.TB, s xsk.Link, n int, check func(number uint32, frame []byte)) {
	t.Helper()
	frames := make([]xsk.RxFrame, 64)
	for end := time.Now().Add(testTimeout); n > 0; {
		got := s.Receive(frames)
		for i := range frames[:got] {
			if number, ok := mine(&frames[i]); ok {
				check(number, join(&frames[i]))
				n--
			}
		}
		s.Release(frames[:got])
		if got == 0 {
			if time.Now().After(end) {
				st, _ := s.Stats()
				t.Fatalf("%d frames did not come; %+v", n, st)
			}
			if err := s.Wait(10 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// expect returns a check that wants the frames of send, in order.
func expect(t testing.TB, first uint32, lengths ...int) func(uint32, []byte) {
	i := 0
	return func(number uint32, frame []byte) {
		t.Helper()
		if i == len(lengths) {
			t.Fatalf("frame %d came after all that were sent", number)
		}
		want := make([]byte, lengths[i])
		writeFrame(want, first+uint32(i))
		if !bytes.Equal(frame, want) {
			t.Fatalf("frame %d of %d bytes differs from what was sent (number %d, %d bytes)",
				number, len(frame), first+uint32(i), len(want))
		}
		i++
	}
}

// lengths returns n lengths from low to high.
func lengths(n, low, high int) []int {
	r := rand.New(rand.NewPCG(uint64(n), uint64(high)))
	l := make([]int, n)
	for i := range l {
		l[i] = low + r.IntN(high-low+1)
	}
	return l
}

func TestVethBothWays(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{}, xsk.Config{})
	for _, s := range []*xsk.Socket{a, b} {
		want := xsk.Info{
			Backend: "xsk", Interface: vethpair.IfName, Ifindex: s.Info().Ifindex,
			Queues: 1, MTU: 1500, MaxFrame: 1518, TxFrames: 512,
		}
		if s.Info() != want || s.Info().Ifindex == 0 {
			t.Errorf("info %+v, want %+v", s.Info(), want)
		}
	}
	l := lengths(300, 60, 1514)
	send(t, a, 0, l...)
	collect(t, b, len(l), expect(t, 0, l...))
	send(t, b, 1000, l...)
	collect(t, a, len(l), expect(t, 1000, l...))
}

// TestVethManyFramesOneFlush queues more frames than the kernel sends in a call.
func TestVethManyFramesOneFlush(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{TxBudget: 32})
	l := lengths(64, 64, 64)
	queue(t, a, 0, l...)
	flush(t, a)
	if a.Pending() {
		t.Error("frames are pending after one Flush")
	}
	st, _ := a.Stats()
	if st.TxKicks < 2 || st.TxAgain != st.TxKicks-1 || st.TxBusy != 0 {
		t.Errorf("%d calls, %d EAGAIN, %d EBUSY, want at least 2, one less, and 0",
			st.TxKicks, st.TxAgain, st.TxBusy)
	}
	collect(t, b, len(l), expect(t, 0, l...))
}

// TestVethMultiBuffer sends frames of two pieces both ways, received one, two
// and many at a time.
func TestVethMultiBuffer(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{MTU: 4200, NoAddrs: true}, xsk.Config{})
	want := []int{4174, 60, 3840, 3841, 4096, 4097, 4218, 4174, 4174}
	for i, s := range []struct{ from, to *xsk.Socket }{{a, b}, {b, a}} {
		if info := s.from.Info(); !info.MultiBuffer || info.MaxFrame != 4218 {
			t.Fatalf("info %+v, want multi-buffer and frames of 4218 bytes", info)
		}
		for _, batch := range []int{1, 2, 64} {
			first := uint32(1000*i + 100*batch)
			check, got := expect(t, first, want...), 0
			frames := make([]xsk.RxFrame, batch)
			send(t, s.from, first, want...)
			waitFor(t, "all frames", func() bool {
				n := s.to.Receive(frames)
				for j := range frames[:n] {
					if two := frames[j].Tail != nil; two != (want[got] > 3840) {
						t.Errorf("frame of %d bytes: has a tail: %t", want[got], two)
					}
					check(0, join(&frames[j]))
					got++
				}
				s.to.Release(frames[:n])
				return got == len(want)
			})
		}
	}
}

func TestVethFillRingEmpty(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{RxFrames: 16})
	l := lengths(64, 64, 1500)
	send(t, a, 0, l...)
	var st xsk.Stats
	waitFor(t, "48 lost frames", func() bool { st, _ = b.Stats(); return st.RxDropped == 48 })
	if st.RxFillRingEmptyDescs != 48 || st.RxRingFull != 0 {
		t.Errorf("stats %+v, want 48 in RxFillRingEmptyDescs and 0 in RxRingFull", st)
	}
	collect(t, b, 16, expect(t, 0, l[:16]...))
	send(t, a, 100, 64)
	collect(t, b, 1, expect(t, 100, 64))
}

func TestVethRxRingFull(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{RxFrames: 64, RxRing: 16})
	l := lengths(64, 64, 1500)
	send(t, a, 0, l...)
	var st xsk.Stats
	waitFor(t, "48 lost frames", func() bool { st, _ = b.Stats(); return st.RxRingFull == 48 })
	if st.RxDropped != 0 || st.RxFillRingEmptyDescs != 0 {
		t.Errorf("stats %+v, want losses in RxRingFull only", st)
	}
	collect(t, b, 16, expect(t, 0, l[:16]...))
	send(t, a, 100, 64, 65)
	collect(t, b, 2, expect(t, 100, 64, 65))
}

// TestVethFrameTooLong sends a frame that fits one chunk to send from but not
// one to receive into.
func TestVethFrameTooLong(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{MTU: 9000, NoAddrs: true},
		xsk.Config{MultiBuffer: xsk.MultiBufferOff})
	if n := a.Info().MaxFrame; n != 3840 {
		t.Errorf("frames of up to %d bytes, want 3840", n)
	}
	send(t, a, 0, 3841)
	var st xsk.Stats
	waitFor(t, "the lost frame", func() bool { st, _ = b.Stats(); return st.RxDropped == 1 })
	send(t, a, 1, 3840)
	collect(t, b, 1, expect(t, 1, 3840))
}

// TestVethOversize sends frames of three pieces, from a socket that can, to one
// that cannot hold them.
func TestVethOversize(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{MTU: 9000, NoAddrs: true}, xsk.Config{RxFrames: 64})
	if n := a.Info().MaxFrame; n != 2*3840 {
		t.Errorf("frames of up to %d bytes, want 7680", n)
	}
	for i := range uint32(100) { // the chunks go around many times
		send(t, a, 2*i, 2*3840+1, 2*3840)
		collect(t, b, 1, expect(t, 2*i+1, 2*3840))
	}
	if st, _ := b.Stats(); st.RxOversize != 100 || st.RxDropped != 0 {
		t.Errorf("stats %+v, want 100 in RxOversize", st)
	}
	if owners, ok := b.Census(); !ok || owners["fill"] != 64 {
		t.Errorf("chunks %v, want 64 in fill", owners)
	}
}

// TestVethQueues has a socket on each of two queues: the queue that sends is the
// queue that receives.
func TestVethQueues(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{Queues: 2, NoAddrs: true})
	var a, b [2]*xsk.Socket
	for q := range 2 {
		a[q] = openOn(t, p, xsktest.A, xsk.Config{Queue: q})
		b[q] = openOn(t, p, xsktest.B, xsk.Config{Queue: q})
	}
	p.Attach(xsktest.A, a[0].FD(), a[1].FD())
	p.Attach(xsktest.B, b[0].FD(), b[1].FD())
	for q := range 2 {
		l := lengths(50, 60, 1500)
		send(t, a[q], uint32(1000*q), l...)
		collect(t, b[q], len(l), expect(t, uint32(1000*q), l...))
	}
}

func TestVethForward(t *testing.T) {
	for _, mtu := range []int{1500, 4200} {
		_, a, b := wire(t, xsktest.Options{MTU: mtu, NoAddrs: true}, xsk.Config{RxFrames: 64})
		frames := make([]xsk.RxFrame, 16)
		for i := range uint32(50) {
			l := lengths(16, mtu-20, mtu)
			send(t, a, 100*i, l...)
			got := 0
			waitFor(t, "frames to forward", func() bool {
				n := b.Receive(frames)
				b.Forward(frames[:n])
				got += n
				return got == 16
			})
			flush(t, b)
			collect(t, a, 16, expect(t, 100*i, l...))
		}
		waitFor(t, "all chunks in the fill ring", func() bool {
			b.Reserve(nil)
			owners, ok := b.Census()
			return ok && owners["fill"] == 64
		})
	}
}

// TestVethIntegrity sends frames of random length in both directions at once, as
// fast as a window allows, and compares every byte.
func TestVethIntegrity(t *testing.T) {
	total := 100_000
	if raceEnabled || testing.Short() {
		total = 10_000
	}
	_, a, b := wire(t, xsktest.Options{NoAddrs: true, Threaded: true},
		xsk.Config{RxFrames: 4096, TxFrames: 512})
	l := lengths(total, 60, 1514)
	ends := [2]*xsk.Socket{a, b}
	var sent, received [2]int
	checks := [2]func(uint32, []byte){expect(t, 0, l...), expect(t, 0, l...)}
	tx, rx := make([]xsk.TxFrame, 64), make([]xsk.RxFrame, 64)
	end := time.Now().Add(10 * testTimeout)
	for received[0]+received[1] < 2*total {
		for i, s := range ends {
			window := 1024 - (sent[i] - received[1-i])
			n := s.Reserve(tx[:max(0, min(64, window, total-sent[i]))])
			for j := range tx[:n] {
				tx[j].Len = l[sent[i]]
				writeFrame(tx[j].Data[:tx[j].Len], uint32(sent[i]))
				sent[i]++
			}
			s.Transmit(tx[:n])
			flush(t, s)
			got := s.Receive(rx)
			for j := range rx[:got] {
				checks[i](uint32(received[i]), join(&rx[j]))
				received[i]++
			}
			s.Release(rx[:got])
		}
		if time.Now().After(end) {
			t.Fatalf("sent %v, received %v", sent, received)
		}
	}
	for _, s := range ends {
		waitFor(t, "completions", func() bool {
			s.Reserve(nil)
			owners, ok := s.Census()
			return ok && owners["fill"] == 4096 && owners["free"] == 512
		})
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if st.TxPackets != uint64(total) || st.RxPackets != uint64(total) ||
			st.TxBytes != st.RxBytes || st.RxDropped+st.RxRingFull+st.TxBusy+st.KernelFaults != 0 {
			t.Errorf("stats %+v, want %d frames each way and no loss", st, total)
		}
	}
}

// TestVethWake wakes a Wait that would last for ever.
func TestVethWake(t *testing.T) {
	_, a, _ := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{})
	a.Wake()
	if err := a.Wait(-1); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		woken := make(chan struct{})
		go func() { a.Wake(); close(woken) }()
		if err := a.Wait(-1); err != nil {
			t.Fatal(err)
		}
		<-woken
	}
	for range 2 { // the first may end early for the last Wake
		start := time.Now()
		if err := a.Wait(5 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) >= 5*time.Millisecond {
			return
		}
	}
	t.Error("wait does not last as long as asked")
}

func TestVethNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	_, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{})
	tx, rx := make([]xsk.TxFrame, 8), make([]xsk.RxFrame, 64)
	allocs := testing.AllocsPerRun(200, func() {
		n := a.Reserve(tx)
		for i := range tx[:n] {
			tx[i].Len = 64
		}
		a.Transmit(tx[:n])
		if err := a.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(time.Millisecond); err != nil {
			t.Fatal(err)
		}
		got := b.Receive(rx)
		b.Forward(rx[:got/2])
		b.Release(rx[got/2 : got])
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
		a.Release(rx[:a.Receive(rx)])
		a.Wake()
		if err := a.Wait(time.Millisecond); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations in a round, want 0", allocs)
	}
	if st, _ := b.Stats(); st.RxPackets == 0 || st.TxPackets == 0 {
		t.Errorf("stats %+v: nothing moved", st)
	}
}
