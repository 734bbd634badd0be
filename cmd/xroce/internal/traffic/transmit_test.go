package traffic

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"xroce/xsk"
)

// fakeLive is a transmitter in memory: of each run it sends as many frames as it is told.
type fakeLive struct {
	slots  [4][]byte
	free   []uint32
	queue  []string
	takes  int // frames of a run
	fails  error
	sent   []string
	closed bool
}

func newFakeLive() *fakeLive {
	f := &fakeLive{takes: 100}
	for i := range f.slots {
		f.slots[i] = make([]byte, 128)
		f.free = append(f.free, uint32(i))
	}
	return f
}

func (*fakeLive) Room() int { return 50 }

func (f *fakeLive) Reserve() (slot uint32, frame []byte, ok bool) {
	if len(f.free) == 0 {
		return 0, nil, false
	}
	slot, f.free = f.free[0], f.free[1:]
	return slot, f.slots[slot], true
}

func (f *fakeLive) Return(slot uint32) { f.free = append(f.free, slot) }

func (f *fakeLive) Queue(slot uint32, length int) {
	f.queue = append(f.queue, string(f.slots[slot][:length]))
	f.free = append(f.free, slot)
}

func (f *fakeLive) Queued() int { return len(f.queue) }

func (f *fakeLive) First() []byte { return []byte(f.queue[0]) }

func (f *fakeLive) Drop() { f.queue = f.queue[1:] }

func (f *fakeLive) Run() (sent, lost uint64, err error) {
	if f.fails != nil {
		return 0, 0, f.fails
	}
	n := min(f.takes, len(f.queue))
	f.sent = append(f.sent, f.queue[:n]...)
	f.queue = f.queue[n:]
	return uint64(n), 0, nil
}

func (f *fakeLive) Close() error { f.closed = true; return nil }

// socketLink is a link that keeps what was sent on it.
type socketLink struct {
	xsk.Link
	room int // frames that it has
	sent []string
}

func (*socketLink) Info() xsk.Info { return xsk.Info{MaxFrame: 100} }

func (s *socketLink) Reserve(dst []xsk.TxFrame) int {
	n := min(len(dst), s.room)
	for i := range n {
		dst[i] = xsk.TxFrame{Data: make([]byte, 100), Ref: 1}
	}
	s.room -= n
	return n
}

func (s *socketLink) Transmit(frames []xsk.TxFrame) {
	for i := range frames {
		s.sent = append(s.sent, string(frames[i].Data[:frames[i].Len]))
	}
}

func (s *socketLink) Return(frames []xsk.TxFrame) { s.room += len(frames) }

func (*socketLink) Flush() error { return nil }

func (*socketLink) Pending() bool { return false }

func (s *socketLink) Stats() (xsk.Stats, error) {
	return xsk.Stats{TxPackets: uint64(len(s.sent))}, nil
}

func (*socketLink) Close() error { return nil }

// aLiveLink is one over a link with so many frames, with the reasons that it told.
func aLiveLink(room int, only bool) (l *liveLink, live *fakeLive, s *socketLink, told *[]error) {
	live, s, told = newFakeLive(), &socketLink{room: room}, new([]error)
	l = &liveLink{Link: s, live: live, only: only, fell: func(why error) {
		*told = append(*told, why)
	}}
	return l, live, s, told
}

// put sends frames and flushes.
func put(t *testing.T, l *liveLink, frames ...string) error {
	t.Helper()
	var batch [8]xsk.TxFrame
	n := l.Reserve(batch[:])
	if n < len(frames) {
		t.Fatalf("%d frames are free, want %d", n, len(frames))
	}
	for i, text := range frames {
		if len(batch[i].Data) != 100 {
			t.Fatalf("a frame of %d bytes", len(batch[i].Data))
		}
		batch[i].Len = copy(batch[i].Data, text)
	}
	l.Transmit(batch[:len(frames)])
	l.Return(batch[len(frames):n])
	return l.Flush()
}

// stats are those of a link, but for the kernel's.
func stats(t *testing.T, l *liveLink) (packets, outstanding uint64) {
	t.Helper()
	st, err := l.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return st.TxPackets, st.TxOutstanding
}

// TestLiveLink: frames go as live frames, those that a full ring leaves go with the next flush, and
// nobody is told anything.
func TestLiveLink(t *testing.T) {
	l, live, s, told := aLiveLink(8, false)
	live.takes = 2
	if err := put(t, l, "a", "b", "c"); err != nil || !l.Pending() {
		t.Fatalf("%v, pending %v", err, l.Pending())
	}
	if n, out := stats(t, l); n != 3 || out != 1 {
		t.Errorf("took %d, %d are on their way", n, out)
	}
	if err := l.Flush(); err != nil || l.Pending() {
		t.Fatalf("%v, pending %v", err, l.Pending())
	}
	if !slices.Equal(live.sent, []string{"a", "b", "c"}) || s.sent != nil || *told != nil {
		t.Errorf("live %q, socket %q, told %v", live.sent, s.sent, *told)
	}
	if err := l.Close(); err != nil || !live.closed {
		t.Errorf("%v, closed %v", err, live.closed)
	}
}

// TestLiveLinkFalls: where live frames do not go, all that waits goes over the socket, in order and
// as fast as that has room, and it is told once why.
func TestLiveLinkFalls(t *testing.T) {
	l, live, s, told := aLiveLink(2, false)
	refused := errors.New("refused")
	live.fails = refused
	if err := put(t, l, "a", "b", "c"); err != nil || !l.Pending() {
		t.Fatalf("%v, pending %v", err, l.Pending())
	}
	s.room = 3
	if err := l.Flush(); err != nil || l.Pending() {
		t.Fatalf("%v, pending %v", err, l.Pending())
	}
	if err := put(t, l, "d"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.sent, []string{"a", "b", "c", "d"}) || live.sent != nil {
		t.Errorf("live %q, socket %q", live.sent, s.sent)
	}
	if n, out := stats(t, l); n != 4 || out != 0 {
		t.Errorf("took %d, %d are on their way", n, out)
	}
	if len(*told) != 1 || !errors.Is((*told)[0], refused) {
		t.Errorf("told %v", *told)
	}
}

// TestLiveLinkLong: a frame that is too long for a live frame goes over the socket, with those
// around it.
func TestLiveLinkLong(t *testing.T) {
	l, live, s, told := aLiveLink(8, false)
	long := strings.Repeat("x", 51)
	if err := put(t, l, "a", long, "b"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.sent, []string{"a", long, "b"}) || live.sent != nil {
		t.Errorf("live %q, socket %q", live.sent, s.sent)
	}
	if len(*told) != 1 || !errors.Is((*told)[0], errors.ErrUnsupported) {
		t.Errorf("told %v", *told)
	}
}

// TestLiveLinkOnly: who wants live frames by name gets an error, and nothing over the socket.
func TestLiveLinkOnly(t *testing.T) {
	l, live, s, told := aLiveLink(8, true)
	refused := errors.New("refused")
	live.fails = refused
	if err := put(t, l, "a"); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if s.sent != nil || *told != nil {
		t.Errorf("socket %q, told %v", s.sent, *told)
	}
}

// TestWayOut: the first reason is the one that is kept and told.
func TestWayOut(t *testing.T) {
	var told []error
	w := wayOut{way: ByXDP, told: func(why error) { told = append(told, why) }}
	if way, why := w.Way(); way != ByXDP || why != nil {
		t.Errorf("%v, %v", way, why)
	}
	first := errors.New("first")
	w.fell(first)
	w.fell(errors.New("second"))
	if way, why := w.Way(); way != BySocket || !errors.Is(why, first) || len(told) != 1 {
		t.Errorf("%v, %v, told %v", way, why, told)
	}
}
