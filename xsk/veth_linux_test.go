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

// mine tells whether a received frame is of the tests, and its number.
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
func send(t testing.TB, s *xsk.Socket, first uint32, lengths ...int) {
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

func flush(t testing.TB, s *xsk.Socket) {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// waitFor calls f until it returns true.
func waitFor(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// collect receives until it has n frames of the tests and gives each to check
// before it is released.
func collect(t testing.TB, s *xsk.Socket, n int, check func(number uint32, frame []byte)) {
	t.Helper()
	frames := make([]xsk.RxFrame, 64)
	for end := time.Now().Add(patience); n > 0; {
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
			MTU: 1500, MaxFrame: 1518, TxFrames: 512,
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
