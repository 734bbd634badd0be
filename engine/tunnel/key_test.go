package tunnel

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/encap/seal"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce/wire"
)

func testKey(word string) *Key {
	k, err := ParseKey(bytes.Repeat([]byte(word), 8))
	if err != nil {
		panic(err)
	}
	return k
}

// TestOtherKey: an end with another key, or none, is refused by both.
func TestOtherKey(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC} {
		for name, other := range map[string]*Key{"another": testKey("two"), "none": nil} {
			t.Run(over.String()+" "+name, func(t *testing.T) {
				t.Parallel()
				l := newLAN(t, sim.Faults{})
				l.response = patient // each asks once
				c := Config{Format: encap.EoIB, Over: over, Key: testKey("one")}
				a := l.site(1, 1500, TAP, c, 2)
				c.Key = other
				b := l.site(2, 1500, TAP, c, 1)
				for _, s := range []*site{a, b} {
					err := s.tryOnce(s.peers[0])
					var mismatch *MismatchError
					if !errors.Is(err, ErrKey) && !errors.As(err, &mismatch) {
						t.Errorf("refused by %v", err)
					}
					if s.Stats().Peers[0].Up {
						t.Error("the peer is up")
					}
				}
			})
		}
	}
}

// TestRekeyConnection: keys change while datagrams go, and none is lost.
func TestRekeyConnection(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{
		Format: encap.EoIB, Over: OverRC, Key: testKey("one"), Rekey: 20 * time.Millisecond,
	}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	w := a.peers[0].ways[0].Load()
	for i, changed := 0, 0; changed < 3; i++ {
		datagram := frame(0xff, byte(i), 100)
		a.send(inner.VNet{}, datagram)
		if _, got := b.receive(); !bytes.Equal(got, datagram) {
			t.Fatalf("%x came", got)
		}
		if now := a.peers[0].ways[0].Load(); now != w {
			w, changed = now, changed+1
		}
	}
}

// TestRekeyWhileNothingIsTaken: datagrams that a peer has acknowledged are not lost with the
// connection by which they came, though that is replaced and over long before they are taken.
func TestRekeyWhileNothingIsTaken(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{
		Format: encap.EoIB, Over: OverRC, Key: testKey("one"), Rekey: 250 * time.Millisecond,
	}
	dev, m := l.deviceIn(1, 1500, direct) // it notices at once that all is acknowledged
	a := l.siteOn(dev, m, TAP, c, 2)
	b := l.siteThatWaits(2, c, 1)
	a.awaitUp()
	b.awaitUp()
	const many = connReceives / 2
	want := map[string]bool{}
	for i := range many {
		datagram := frame(0xff, 2, 100+i)
		want[string(datagram)] = true
		a.send(inner.VNet{}, datagram)
	}
	a.await("not sent", func(s Stats) bool { return s.Peers[0].TxDatagrams == many })
	// The sender replaces one when the one before is over, with its time-wait.
	const further = 2
	before := a.Stats().Peers[0].Connects
	a.await("not replaced", func(s Stats) bool { return s.Peers[0].Connects > before+further })
	for range many {
		_, got := b.receive()
		if !want[string(got)] {
			t.Errorf("%x came", got)
		}
		delete(want, string(got))
	}
	b.await("connections are left", func(Stats) bool { return b.incoming() <= further })
}

// TestDrainAwaitsWhatIsInHand: a connection that was replaced is not ended while the lane may still
// post to it.
func TestDrainAwaitsWhatIsInHand(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverRC}
	a := l.site(1, 1500, TAP, c, 2)
	l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	var conn *cm.Conn
	var w *way
	a.await("no connection", func(Stats) (ok bool) { // a dial on a busy machine may be too late
		var err error
		conn, w, err = a.dial(t.Context(), a.peers[0], a.lanes[0])
		return err == nil
	})
	w.inHand.Store(true)
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		a.drain(t.Context(), conn, w)
	}()
	select {
	case <-conn.Done():
		if time.Since(began) < drainTime { // then it waits for nobody
			t.Error("ended with something in hand")
		}
	case <-time.After(5 * drainLook):
	}
	w.inHand.Store(false)
	<-ended
}

// TestTakeInHand: what a lane takes in hand is the way that there is, which is in use from then on.
func TestTakeInHand(t *testing.T) {
	p := newPeer(Peer{Addr: addr(2)}, 1, 1)
	if p.takeInHand(0) != nil {
		t.Error("a way to nowhere")
	}
	var replaced atomic.Int64
	var lane sync.WaitGroup
	p.ways[0].Store(new(way))
	lane.Go(func() {
		for replaced.Load() < 1000 {
			w := p.takeInHand(0)
			w.posted.Add(1)
			w.inHand.Store(false)
			if w.gone.Load() {
				t.Error("it was not in use")
				return
			}
			w.posted.Add(-1)
		}
	})
	for range 1000 {
		w := p.ways[0].Swap(new(way))
		for w.inUse() {
			runtime.Gosched()
		}
		w.gone.Store(true)
		replaced.Add(1)
	}
	lane.Wait()
}

// siteThatWaits is a site whose receiver waits with each datagram until the test takes that.
func (l *lan) siteThatWaits(n byte, c Config, peers ...byte) *site {
	l.t.Helper()
	dev, m := l.device(n, 1500)
	q := newFakeQueue()
	q.out = make(chan []byte) // without room
	inside := &Inside{Name: "tap0", Kind: TAP, MTU: l.inside, Queues: []Queue{q}}
	s := l.siteIn(dev, m, inside, c, peers...)
	s.queue = q
	return s
}

// TestRekeyDatagrams: a peer that is looked up again has another key.
func TestRekeyDatagrams(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.response = patient // the look-ups below are not repeated
	c := Config{Format: encap.EoIB, Key: testKey("one")}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	for i := range 3 {
		b.peers[0].sessions.mu.Lock()
		before := b.peers[0].sessions.list[0]
		b.peers[0].sessions.mu.Unlock()
		a.await("not looked up", func(Stats) bool { // one that the tunnel makes may overtake it
			return a.lookUp(t.Context(), a.peers[0]) == nil
		})
		a.awaitUp()
		datagram := frame(0xff, byte(i), 100)
		a.send(inner.VNet{}, datagram)
		if _, got := b.receive(); !bytes.Equal(got, datagram) {
			t.Fatalf("%x came", got)
		}
		b.peers[0].sessions.mu.Lock()
		if b.peers[0].sessions.list[0] == before {
			t.Error("the key is that of before")
		}
		b.peers[0].sessions.mu.Unlock()
	}
}

// TestAsked: what asked once opens no session again, but the same answer is given to one that
// was lost.
func TestAsked(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Key: testKey("one")}
	a, b := l.site(1, 1500, TAP, c, 9), l.site(2, 1500, TAP, c, 9)
	p := newPeer(Peer{Addr: addr(2)}, 1, 1)
	first, state, err := b.ask(&b.hello, 0)
	if err != nil {
		t.Fatal(err)
	}
	answer, session, err := a.answer(p, first)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := a.answer(p, first)
	if err != nil || same != session || !bytes.Equal(answer, again) {
		t.Errorf("the second answer differs: %v", err)
	}
	_, sealer, err := b.answered(state, answer)
	if err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 10+seal.Overhead)
	if _, r := sealer.Seal(packet, 10, 7); r != seal.OK {
		t.Fatal(r)
	}
	if _, hint, r := session.opener.Open(packet); r != seal.OK || hint != 7 {
		t.Errorf("not opened: %s", r)
	}
	second, _, err := b.ask(&b.hello, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.answer(p, second); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.answer(p, first); !errors.Is(err, ErrKey) {
		t.Errorf("what was asked before: %v", err)
	}
	for i := range second {
		changed := bytes.Clone(second)
		changed[i] ^= 1
		if _, _, err := a.answer(p, changed); err == nil {
			t.Fatalf("byte %d changed, and answered", i)
		}
	}
	for i := range answer {
		changed := bytes.Clone(answer)
		changed[i] ^= 1
		_, state, err := b.ask(&b.hello, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.answered(state, changed); err == nil {
			t.Fatalf("byte %d of an answer changed, and taken", i)
		}
	}
}

// TestNotSealed: with a key nothing is taken that was not sealed.
func TestNotSealed(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	a := l.site(1, 1500, TAP, Config{Format: encap.EoIB, Key: testKey("one")}, 9)
	p := a.peers[0]
	plain := append(make([]byte, 40), 0xc0, 0, 0, 0)
	plain = append(plain, frame(0xff, 1, 60)...)
	r := &receiver{t: a.Tunnel}
	r.handle(p, nil, 1, plain, 40, 0)
	if n := a.Stats().Peers[0].Dropped["not_sealed"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	sealed := make([]byte, 40+100+seal.Overhead)
	if _, reason := seal.NewSealer([seal.KeyLen]byte{}, 3).Seal(sealed[40:], 100, 0); reason != 0 {
		t.Fatal(reason)
	}
	r.handle(p, nil, 1, sealed, 40, 0)
	if n := a.Stats().Peers[0].Dropped["no_key"]; n != 1 {
		t.Errorf("counted %d times", n)
	}
	if len(a.queue.out) != 0 {
		t.Error("it went inside")
	}
}

// FuzzHello reads no hello that it would not write.
func FuzzHello(f *testing.F) {
	h := hello{format: encap.VNIC, flags: 3, segment: 9, mtu: 1500, largest: 1 << 16, instance: 1}
	f.Add(h.put())
	h.flags, h.group = helloGroup, wire.GID{0: 0xff, 15: 1}
	f.Add(h.put())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHello(b)
		if err != nil {
			return
		}
		if again, err := parseHello(h.put()); err != nil || again != h {
			t.Fatalf("%+v, again %+v, %v", h, again, err)
		}
	})
}
