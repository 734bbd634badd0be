package asavie_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/asavie"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// One end of the wire is an xsk.Socket, the other an asavie.Socket:
//
//	namespace a: xsk -- xr0 ==== veth ==== xr0 -- asavie :namespace b
var testTimeout = timeout.Scaled(20 * time.Second)

// cross makes the wire.
func cross(t testing.TB, o xsktest.Options) (*xsktest.Pair, *xsk.Socket, *asavie.Socket) {
	t.Helper()
	o.NoAddrs = true
	p := xsktest.NewPair(t, o)
	var ours *xsk.Socket
	var theirs *asavie.Socket
	var err error
	p.Do(xsktest.A, func() {
		ours, err = xsk.Open(xsk.Config{Interface: vethpair.IfName, RxFrames: 2048, TxFrames: 512})
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Do(xsktest.B, func() { theirs, err = asavie.Open(asavie.Config{Interface: vethpair.IfName}) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ours.Close(), theirs.Close(), theirs.Close()); err != nil {
			t.Error(err)
		}
	})
	p.Attach(xsktest.A, ours.FD())
	p.Attach(xsktest.B, theirs.FD())
	return p, ours, theirs
}

// length and writeFrame make frame number n, the same every time.
func length(n uint32) int { return 60 + int(rand.NewPCG(uint64(n), 7).Uint64()%1455) }

func writeFrame(b []byte, n uint32) {
	copy(b, "\x02\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00\x0a\x88\xb5")
	binary.BigEndian.PutUint32(b[14:], n)
	src := rand.NewPCG(uint64(n), 1)
	for i := 18; i < len(b); i++ {
		if i%8 == 0 {
			n = uint32(src.Uint64())
		}
		b[i] = byte(n >> (i % 4 * 8))
	}
}

// queue queues up to n frames from number first on and returns how many.
func queue(t testing.TB, l xsk.Link, frames []xsk.TxFrame, first uint32, n int) int {
	t.Helper()
	n = l.Reserve(frames[:min(n, len(frames))])
	for i := range frames[:n] {
		frames[i].Len = length(first + uint32(i))
		writeFrame(frames[i].Data[:frames[i].Len], first+uint32(i))
	}
	l.Transmit(frames[:n])
	return n
}

// take receives frames and compares them with the numbers from first on.
func take(t testing.TB, l xsk.Link, frames []xsk.RxFrame, first uint32) int {
	t.Helper()
	n := l.Receive(frames)
	for i := range frames[:n] {
		want := make([]byte, length(first+uint32(i)))
		writeFrame(want, first+uint32(i))
		if !bytes.Equal(frames[i].Head, want) || frames[i].Tail != nil {
			t.Fatalf("%s: frame %d differs", l.Info().Backend, first+uint32(i))
		}
	}
	l.Release(frames[:n])
	return n
}

func TestCrossBothWays(t *testing.T) {
	total := 100_000
	if testing.Short() || xsktest.RaceDetector {
		total = 5000
	}
	_, ours, theirs := cross(t, xsktest.Options{})
	ends := [2]xsk.Link{ours, theirs}
	var sent, received [2]int
	tx, rx := make([]xsk.TxFrame, 64), make([]xsk.RxFrame, 64)
	for end := time.Now().Add(5 * testTimeout); received[0]+received[1] < 2*total; {
		for i, l := range ends {
			window := 1024 - (sent[i] - received[1-i])
			n := max(0, min(window, total-sent[i]))
			sent[i] += queue(t, l, tx, uint32(sent[i]), n)
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			received[i] += take(t, l, rx, uint32(received[i]))
		}
		if time.Now().After(end) {
			t.Fatalf("sent %v, received %v of %d", sent, received, total)
		}
	}
	for _, l := range ends {
		st, err := l.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if st.TxPackets != uint64(total) || st.RxPackets != uint64(total) ||
			st.RxDropped+st.RxRingFull+st.TxBusy != 0 {
			t.Errorf("%s: stats %+v", l.Info().Backend, st)
		}
	}
}

// TestManyFramesOneFlush queues more than the kernel sends in one call.
func TestManyFramesOneFlush(t *testing.T) {
	_, ours, theirs := cross(t, xsktest.Options{})
	if n := queue(t, theirs, make([]xsk.TxFrame, 256), 0, 256); n != 256 {
		t.Fatalf("queued %d frames, want 256", n)
	}
	if err := theirs.Flush(); err != nil || theirs.Pending() {
		t.Errorf("flush: %v, pending %t", err, theirs.Pending())
	}
	rx := make([]xsk.RxFrame, 64)
	for end, got := time.Now().Add(testTimeout), 0; got < 256; {
		got += take(t, ours, rx, uint32(got))
		if time.Now().After(end) {
			t.Fatalf("%d of 256 frames came", got)
		}
	}
}

func TestHeldFrames(t *testing.T) {
	_, ours, theirs := cross(t, xsktest.Options{})
	tx, rx := make([]xsk.TxFrame, 64), make([]xsk.RxFrame, 64)
	receive := func(first uint32, n int, f []xsk.RxFrame) {
		for end, got := time.Now().Add(testTimeout), 0; got < n; {
			got += theirs.Receive(f[got:n])
			if time.Now().After(end) {
				t.Fatalf("frames from %d on do not come", first)
			}
		}
	}
	held := make([]xsk.RxFrame, 8)
	queue(t, ours, tx, 0, 8)
	if err := ours.Flush(); err != nil {
		t.Fatal(err)
	}
	receive(0, 8, held)
	for i := uint32(0); i < 50; i++ { // more than there are frames
		first := 1000 + 64*i
		for n := 0; n < 64; {
			n += queue(t, ours, tx, first+uint32(n), 64-n)
			if err := ours.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		receive(first, 64, rx)
		theirs.Release(rx)
	}
	for i := range held {
		want := make([]byte, length(uint32(i)))
		writeFrame(want, uint32(i))
		if !bytes.Equal(held[i].Head, want) {
			t.Errorf("frame %d changed while it was held", i)
		}
	}
	theirs.Release(held)
}

func TestLinkDown(t *testing.T) {
	p, ours, theirs := cross(t, xsktest.Options{})
	set := func(f func(netlink.Link) error) {
		p.Do(xsktest.B, func() {
			l, err := netlink.LinkByName(vethpair.IfName)
			if err == nil {
				err = f(l)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	set(netlink.LinkSetDown)
	tx, rx := make([]xsk.TxFrame, 16), make([]xsk.RxFrame, 16)
	queue(t, theirs, tx, 0, 16)
	for range 3 {
		if err := theirs.Flush(); !errors.Is(err, unix.ENETDOWN) {
			t.Errorf("flush: %v, want ENETDOWN", err)
		}
	}
	if st, _ := theirs.Stats(); st.TxNetDown != 3 || !theirs.Pending() {
		t.Errorf("ENETDOWN counted %d times, want 3; pending %t", st.TxNetDown, theirs.Pending())
	}
	set(netlink.LinkSetUp)
	if err := theirs.Flush(); err != nil {
		t.Fatal(err)
	}
	for end, got := time.Now().Add(testTimeout), 0; got < 16; {
		got += take(t, ours, rx, uint32(got))
		if time.Now().After(end) {
			t.Fatalf("%d of 16 frames came", got)
		}
	}
}

func TestReopen(t *testing.T) {
	p, _, theirs := cross(t, xsktest.Options{})
	for range 2 { // the second time after Close
		p.Do(xsktest.B, func() {
			_, err := asavie.Open(asavie.Config{Interface: vethpair.IfName})
			if !errors.Is(err, asavie.ErrReopen) {
				t.Errorf("open again: %v, want ErrReopen", err)
			}
		})
		if err := theirs.Close(); err != nil {
			t.Error(err)
		}
	}
	_, statsErr := theirs.Stats()
	for name, err := range map[string]error{
		"flush": theirs.Flush(), "wait": theirs.Wait(-1), "stats": statsErr,
	} {
		if !errors.Is(err, xsk.ErrClosed) {
			t.Errorf("%s of a closed socket: %v, want ErrClosed", name, err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for _, tc := range []struct {
		cfg  asavie.Config
		text string
	}{
		{asavie.Config{}, "no interface"},
		{asavie.Config{Ifindex: 1, Queue: -1}, "Queue is -1"},
		{asavie.Config{Ifindex: 1, RxFrames: 1 << 20}, "RxFrames is 1048576"},
		{asavie.Config{Ifindex: 1, Mode: 9}, "Mode is 9"},
		{asavie.Config{Interface: "nosuch0"}, "nosuch0"},
	} {
		if _, err := asavie.Open(tc.cfg); err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%+v: error %v, want %q", tc.cfg, err, tc.text)
		}
	}
}

func TestWake(t *testing.T) {
	_, _, theirs := cross(t, xsktest.Options{})
	for range 100 {
		done := make(chan struct{})
		go func() { theirs.Wake(); close(done) }()
		if err := theirs.Wait(-1); err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

func TestNoAllocations(t *testing.T) {
	_, ours, theirs := cross(t, xsktest.Options{})
	tx, rx := make([]xsk.TxFrame, 8), make([]xsk.RxFrame, 64)
	moved := 0
	allocs := testing.AllocsPerRun(200, func() {
		for _, l := range []xsk.Link{ours, theirs} {
			n := l.Reserve(tx)
			for i := range tx[:n] {
				tx[i].Len = 64
			}
			l.Return(tx[n/2 : n])
			l.Transmit(tx[:n/2])
			if err := l.Flush(); err != nil {
				t.Fatal(err)
			}
			got := l.Receive(rx)
			l.Release(rx[:got])
			moved += got
		}
	})
	if allocs != 0 || moved == 0 {
		t.Errorf("%v allocations in a round that moved frames (%d), want 0", allocs, moved)
	}
}
