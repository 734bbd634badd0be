package transfer

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/crowd"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// A shortOf is a store and a lobby whose clock stands, with a disk of 100 bytes for files that are
// not in it yet.
type shortOf struct {
	*Store
	lobby *Lobby
	now   time.Time
}

func newShort(t *testing.T, c StoreConfig) *shortOf {
	t.Helper()
	s := &shortOf{now: time.Unix(0, 0)}
	s.Store, _, _ = store(t, c)
	s.free = func(*os.File) (int64, error) { return 100, nil }
	s.roomTime = timeout.Scaled(time.Minute)
	s.lobby = &Lobby{
		Places: 64, Transfers: 8, PerSource: 4, Slow: 1, now: func() time.Time { return s.now },
	}
	return s
}

// A tenant is a guest with a file that is coming.
type tenant struct {
	*Guest
	part *partial
	why  error
	left chan error // what came of leaving when it was hung up on
}

// sum is of all devices.
func (b perDevice) sum() (n int64) {
	for _, more := range b {
		n += more
	}
	return n
}

// ask has a host ask for room.
func (s *shortOf) ask(ctx context.Context, host, name string, size int64) (*tenant, error) {
	g := &tenant{left: make(chan error, 1)}
	g.Guest = s.lobby.Enter(crowd.Host(netip.MustParseAddr(host)), func(why error) {
		g.why = why
		go func() { g.left <- g.part.leave() }()
	})
	err := g.Admit()
	if err == nil {
		o := &message{Path: name, Name: "n", Size: size}
		g.part, err = s.create(ctx, o, Sender{Host: g.source, Guest: g.Guest})
	}
	return g, err
}

// TestSlowGivesRoom: who holds all that there is, and sends next to nothing, gives it to another
// who asks for some of it.
func TestSlowGivesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		config StoreConfig
		size   int64
	}{
		"of the disk":   {StoreConfig{}, 10},
		"--max-total":   {StoreConfig{MaxTotal: 100}, 10},
		"--max-files":   {StoreConfig{MaxFiles: 1}, 0},
		"for a reader":  {StoreConfig{}, UnknownSize},
		"what is kept":  {StoreConfig{Keep: time.Hour, MaxTotal: 100}, 10},
		"all of it":     {StoreConfig{}, 100},
		"kept, and all": {StoreConfig{Keep: time.Hour, MaxTotal: 100}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShort(t, c.config)
			slow, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
			must(t, err)
			must(t, slow.part.add([]byte("x")))
			s.now = s.now.Add(24 * time.Hour)
			slow.Progress(1, 100)
			other, err := s.ask(t.Context(), "192.0.2.2", "small", c.size)
			if err == nil && c.size == UnknownSize {
				err = other.part.add(make([]byte, 10))
			}
			if err != nil || !errors.Is(slow.why, ErrSlow) {
				t.Fatalf("one byte came in a day, and: %v; hung up on: %v", err, slow.why)
			}
			must(t, errors.Join(<-slow.left, other.part.close()))
			if s.missing.sum() != 0 || len(s.coming) != 0 || len(s.wants) != 0 {
				t.Errorf("missing %d, %d are coming, %d wait", s.missing.sum(), len(s.coming),
					len(s.wants))
			}
		})
	}
}

// TestRoomIsKept by who is fast, by who knows the token, and by who is slow when another asks for
// more than all that slow ones have: that is refused for good.
func TestRoomIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		done, size, slow int64
	}{
		"fast":      {done: 99, size: 10, slow: 1},
		"trusted":   {done: 0, size: 10, slow: 0},
		"no use":    {done: 0, size: 101, slow: 1},
		"no use of": {done: 0, size: MaxSize, slow: 1},
	} {
		s := newShort(t, StoreConfig{})
		s.lobby.Slow = c.slow
		first, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
		must(t, err)
		s.now = s.now.Add(2 * slowGrace)
		first.Progress(c.done, 100)
		_, err = s.ask(t.Context(), "192.0.2.2", "small", c.size)
		if !errors.Is(err, unix.ENOSPC) || again(err) || first.why != nil {
			t.Errorf("%s: %v; hung up on: %v", name, err, first.why)
		}
		must(t, first.part.close())
	}
}

// TestFewGiveRoom: no more are hung up on than needed, those first who hold most.
func TestFewGiveRoom(t *testing.T) {
	s := newShort(t, StoreConfig{})
	little, err := s.ask(t.Context(), "192.0.2.1", "little", 10)
	must(t, err)
	much, err := s.ask(t.Context(), "192.0.2.2", "much", 90)
	must(t, err)
	s.now = s.now.Add(2 * slowGrace)
	other, err := s.ask(t.Context(), "192.0.2.3", "other", 50)
	if err != nil || much.why == nil || little.why != nil {
		t.Fatalf("%v; hung up on: %v, and for less: %v", err, much.why, little.why)
	}
	must(t, errors.Join(<-much.left, little.part.close(), other.part.close()))
}

// TestRoomMayCome: who finds none because of what has just begun, and may be slow, is told to try
// again, and nobody is hung up on.
func TestRoomMayCome(t *testing.T) {
	s := newShort(t, StoreConfig{})
	s.roomTime = 0
	first, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
	must(t, err)
	_, err = s.ask(t.Context(), "192.0.2.2", "small", 10)
	if !errors.Is(err, ErrBusy) || !again(err) || first.why != nil {
		t.Errorf("%v; hung up on: %v", err, first.why)
	}
	must(t, first.part.close())
}

// TestRoomIsGivenBack: who waits for what has just begun has its room when that is given up.
func TestRoomIsGivenBack(t *testing.T) {
	s := newShort(t, StoreConfig{})
	first, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
	must(t, err)
	type answer struct {
		*tenant
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		g, err := s.ask(t.Context(), "192.0.2.2", "small", 10)
		answers <- answer{g, err}
	}()
	for waits := false; !waits; { // it takes the time that the other needs to ask
		select {
		case a := <-answers:
			t.Fatalf("it does not wait: %v", a.err)
		default:
		}
		s.mu.Lock()
		waits = len(s.wants) > 0
		s.mu.Unlock()
		runtime.Gosched()
	}
	must(t, first.part.close())
	other := <-answers
	if other.err != nil {
		t.Fatal(other.err)
	}
	must(t, other.part.close())
}

// TestRoomIsForWhoWaits: who gave up room when another waits for it, and asks for it again at
// once, does not get it before that one, and gets what is left.
func TestRoomIsForWhoWaits(t *testing.T) {
	s := newShort(t, StoreConfig{})
	waits := &want{dir: s.dir, dev: deviceOf(s.dir), files: 1, size: 10}
	s.wants = []*want{waits}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ask(ended, "192.0.2.1", "big", 91); !errors.Is(err, context.Canceled) {
		t.Errorf("who comes later does not wait: %v", err)
	}
	left, err := s.ask(t.Context(), "192.0.2.1", "big", 90)
	must(t, err)
	s.look(waits)
	s.mu.Lock()
	err = s.makeRoom(waits)
	s.mu.Unlock()
	if err != nil {
		t.Errorf("who waited: %v", err)
	}
	must(t, left.part.close())
}

// TestStrangersDoNotHearHowMuch room there is: who asks for just that has it all. Who knows the
// token does.
func TestStrangersDoNotHearHowMuch(t *testing.T) {
	for _, config := range []StoreConfig{{}, {MaxTotal: 7123}} {
		for token, want := range map[string]bool{"": false, strings.Repeat("t", MinToken): true} {
			r := newRig(t, 9000, sim.Faults{})
			r.serve(t, config)
			r.store.free = func(*os.File) (int64, error) { return 7123, nil }
			if token != "" {
				r.token = Token(token)
			}
			_, err, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{Token: r.token},
				t.Context(), t.Context())
			if err == nil || strings.Contains(err.Error(), "7123") != want ||
				!strings.Contains(err.Error(), "9000 bytes") ||
				!strings.Contains(receiveErr.Error(), "7123") {
				t.Errorf("with %q: it hears %v, and we %v", token, err, receiveErr)
			}
		}
	}
}

// TestRoomOfAPart: what is there of a file makes room for who waits also while its sender asks to
// go on with it.
func TestRoomOfAPart(t *testing.T) {
	s := newShort(t, StoreConfig{Keep: time.Hour, MaxTotal: 100})
	first, err := s.ask(t.Context(), "192.0.2.1", "big", 100)
	must(t, err)
	must(t, errors.Join(first.part.add(make([]byte, 50)), first.part.leave()))
	s.mu.Lock()
	h := &holding{dev: deviceOf(s.dir)}
	name := s.kept[0].name
	s.mu.Unlock()
	s.resume(name, h)
	if len(s.coming) != 1 || h.free == 0 || s.total != 0 {
		t.Errorf("%d are coming, of %d bytes; total %d", len(s.coming), h.free, s.total)
	}
	s.abandoned(h)
	if len(s.coming) != 0 {
		t.Error("it is still coming")
	}
}

// TestRoomOfAnotherDevice: what is still to come on one file system is not taken from another one
// below the same directory, and nobody is hung up on for that.
func TestRoomOfAnotherDevice(t *testing.T) {
	s := newShort(t, StoreConfig{})
	free := map[uint64]int64{1: 1 << 40, 2: 10}
	asked := uint64(0)
	s.free = func(*os.File) (int64, error) { return free[asked], nil }
	promise := func(dev uint64, size int64) (*holding, error) {
		asked = dev
		w := &want{dir: s.dir, dev: dev, files: 1, size: size, has: &holding{dev: dev}}
		return w.has, s.promise(t.Context(), w)
	}
	large, err := promise(1, 1<<30)
	must(t, err)
	small, err := promise(2, 10)
	must(t, err)
	if _, err := promise(2, 1); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("one byte more than there is: %v", err)
	}
	s.wrote(1, 1<<29)
	s.wrote(2, 10)
	if s.missing[1] != 1<<29 || s.missing[2] != 0 {
		t.Errorf("missing: %v", s.missing)
	}
	s.forget(large, 1<<30, 1<<29)
	s.forget(small, 10, 0)
	if len(s.missing) != 0 {
		t.Errorf("nothing is coming, and missing: %v", s.missing)
	}
}

// TestSlowOnAnotherDevice: who is slow on one file system is not hung up on for room on another
// one, which it cannot give.
func TestSlowOnAnotherDevice(t *testing.T) {
	const elsewhere = 1
	s := newShort(t, StoreConfig{})
	there, err := s.ask(t.Context(), "192.0.2.1", "there", 60)
	must(t, err)
	s.missing.add(there.part.room.dev, -60)
	s.missing.add(elsewhere, 60)
	there.part.room.dev = elsewhere
	here, err := s.ask(t.Context(), "192.0.2.2", "here", 50)
	must(t, err)
	s.now = s.now.Add(2 * slowGrace)
	other, err := s.ask(t.Context(), "192.0.2.3", "other", 90)
	must(t, err)
	must(t, errors.Join(<-here.left, other.part.close()))
	if there.why != nil {
		t.Fatalf("who is on another file system was hung up on: %v", there.why)
	}
	must(t, there.part.close())
}

// TestRoomIsNotHandedOn: one host has a connection that holds all the room that there is, and sends
// nothing, and another one that waits for it. What the first gives back is for another host that
// waits, too.
func TestRoomIsNotHandedOn(t *testing.T) {
	for name, ends := range map[string]func(*tenant){
		"it is slow for who waits": func(*tenant) {},
		// As when another connection is admitted in its place (Lobby.Admit).
		"it gives way at the door": func(h *tenant) {
			h.lobby.giveWay(func(g *Guest) bool { return g == h.Guest })
		},
	} {
		t.Run(name, func(t *testing.T) { roomIsNotHandedOn(t, ends) })
	}
}

// roomIsNotHandedOn has the holder end, with the lobby locked.
func roomIsNotHandedOn(t *testing.T, ends func(*tenant)) {
	t.Helper()
	s := newShort(t, StoreConfig{})
	type answer struct {
		*tenant
		err error
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := func(host, name string, size int64, line int) <-chan answer {
		got := make(chan answer, 1)
		go func() {
			g, err := s.ask(ctx, host, name, size)
			got <- answer{g, err}
		}()
		for n := 0; n < line; runtime.Gosched() {
			s.mu.Lock()
			n = len(s.wants)
			s.mu.Unlock()
		}
		return got
	}
	holder, err := s.ask(t.Context(), "192.0.2.1", "all", 100)
	must(t, err)
	again := waits("192.0.2.1", "all again", 100, 1)
	honest := waits("192.0.2.2", "tenth", 10, 2)
	s.lobby.mu.Lock()
	s.now = s.now.Add(2 * slowGrace)
	for _, g := range s.lobby.admitted {
		if g != holder.Guest { // who waits gets no older (receiver.put)
			g.since, g.pace.begun = s.now, s.now
		}
	}
	ends(holder)
	s.lobby.mu.Unlock()
	must(t, <-holder.left)
	h := <-honest
	must(t, h.err)
	cancel()
	if a := <-again; a.err == nil {
		t.Error("the host has all of it again")
	}
	must(t, h.part.close())
}
