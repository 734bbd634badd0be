package traffic_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/wire"
	"xroce/xsk"
)

// virtual is a clock that a sleep moves on, and each look a little.
type virtual struct {
	now  clock.Time
	look clock.Time // what a look costs
	tick clock.Time // sleeps end at multiples of it
}

func (v *virtual) Now() clock.Time { v.now += v.look; return v.now }

func (v *virtual) Wall() int64 { return int64(v.now) + 1_000_000 }

func (v *virtual) Sleep(_ context.Context, d clock.Time) {
	v.now = (v.now + d + v.tick - 1) / v.tick * v.tick
}

// wireLink is a link in memory: what is sent on it arrives on it, but for what lose drops.
type wireLink struct {
	frames [][]byte
	lose   func(i int) bool
	sent   int
	stats  xsk.Stats
	wait   func() // is called when there is nothing to receive
	tx     [][]byte
}

const linkFrames = 128

func newWireLink() *wireLink {
	l := &wireLink{}
	for range linkFrames {
		l.tx = append(l.tx, make([]byte, 1518))
	}
	return l
}

func (l *wireLink) Info() xsk.Info { return xsk.Info{MaxFrame: 1518} }

func (l *wireLink) Receive(dst []xsk.RxFrame) int {
	n := min(len(dst), len(l.frames))
	for i := range n {
		dst[i] = xsk.RxFrame{Head: l.frames[i]}
	}
	l.frames = l.frames[n:]
	return n
}

func (l *wireLink) Release([]xsk.RxFrame) {}

func (l *wireLink) Reserve(dst []xsk.TxFrame) int {
	n := min(len(dst), len(l.tx))
	for i := range n {
		dst[i].Data = l.tx[i]
	}
	return n
}

func (l *wireLink) Transmit(frames []xsk.TxFrame) {
	for _, f := range frames {
		if l.lose == nil || !l.lose(l.sent) {
			l.frames = append(l.frames, append([]byte(nil), f.Data[:f.Len]...))
		}
		l.sent++
	}
}

func (l *wireLink) Return([]xsk.TxFrame)      {}
func (l *wireLink) Flush() error              { return nil }
func (l *wireLink) Pending() bool             { return false }
func (l *wireLink) Wake()                     {}
func (l *wireLink) Stats() (xsk.Stats, error) { return l.stats, nil }
func (l *wireLink) Close() error              { return nil }

func (l *wireLink) Wait(time.Duration) error {
	if l.wait != nil {
		l.wait()
	}
	return nil
}

// route is one from 192.0.2.1 to 192.0.2.2.
func route() traffic.Route {
	return traffic.Route{MaxFrame: 1518, Run: 9, Path: wire.Path{
		SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2}, SrcPort: 40000,
		Src: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
		Dst: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.2")),
	}}
}

// sender makes the sender of a plan over a link.
func sender(t *testing.T, p traffic.Plan, l xsk.Link, c traffic.Clock) *traffic.Sender {
	t.Helper()
	flows, err := p.Make(route())
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := p.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	return &traffic.Sender{
		Link: l, Flows: flows, Schedule: schedule, Count: p.Count, Batch: 32, Clock: c,
	}
}
