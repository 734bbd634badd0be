package transfer

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestBurstDoesNotLast: who sent very much at once, and a chunk each half minute since, is slow a
// minute later, however much that was.
func TestBurstDoesNotLast(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 64, Transfers: 8, PerSource: 4, Slow: ChunkSize,
		now: func() time.Time { return now },
	}
	var done int64 = 1 << 40
	guests, gone := make([]*Guest, l.Transfers), 0
	for i := range guests {
		guests[i] = l.enter(from(fmt.Sprint("192.0.2.", i/l.PerSource)))
		must(t, guests[i].Admit())
		guests[i].Progress(done, MaxSize)
	}
	for range 2 * paceSpan / (29 * time.Second) {
		now, done = now.Add(29*time.Second), done+ChunkSize
		for _, g := range guests {
			g.Progress(done, MaxSize)
		}
	}
	if err := l.enter(from("198.51.100.1")).Admit(); !errors.Is(err, ErrBusy) {
		t.Errorf("who was fast less than a minute ago gives way: %v", err)
	}
	now = now.Add(3 * time.Second)
	for range guests {
		if l.enter(from(fmt.Sprint("198.51.100.", gone/l.PerSource))).Admit() == nil {
			gone++
		}
	}
	if gone != l.Transfers {
		t.Errorf("%d of %d gave way", gone, l.Transfers)
	}
}

// TestBurstThatNobodyLookedAt: it does not count either when nothing was looked at since.
func TestBurstThatNobodyLookedAt(t *testing.T) {
	now := time.Unix(0, 0)
	var p pace
	p.begin(now)
	p.add(now, 1<<40)
	if got := p.rate(now.Add(10 * time.Second)); got != 1<<40/10. {
		t.Errorf("after ten seconds: %v bytes a second", got)
	}
	if got := p.rate(now.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour: %v bytes a second", got)
	}
	p.add(now.Add(time.Hour), 900)
	if got := p.rate(now.Add(time.Hour)); got != 30 {
		t.Errorf("with 900 bytes in a span that has just begun: %v bytes a second", got)
	}
}

// TestOurTimeIsNotTheirs: who sent a file fast, which took long to get to disk, is not slow when it
// is told that it is there; who then asks for nothing is.
func TestOurTimeIsNotTheirs(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1000, now: func() time.Time { return now },
	}
	fast := from("192.0.2.1")
	guest := l.enter(fast)
	must(t, guest.Admit())
	now = now.Add(10 * time.Second)
	guest.Progress(100_000, 100_000)
	must(t, guest.Whole())
	now = now.Add(time.Hour)
	guest.Ended()
	if err := l.enter(from("192.0.2.2")).Admit(); !errors.Is(err, ErrBusy) || fast.closed {
		t.Errorf("when it is told: %v", err)
	}
	now = now.Add(2 * paceSpan)
	if err := l.enter(from("192.0.2.2")).Admit(); err != nil || !fast.closed {
		t.Errorf("when it asks for nothing: %v", err)
	}
}
