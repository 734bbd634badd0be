package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"xroce/engine"
	"xroce/engine/capture"
	"xroce/engine/sim"
	"xroce/roce"
)

// A watched list has what is said of the packets of a device.
type watched struct {
	lines []string
	info  []capture.Info
	bytes int
}

func (w *watched) Packet(p *capture.Packet) {
	dir := "in"
	if p.Dir == capture.Outbound {
		dir = "out"
	}
	w.lines = append(w.lines, dir+" "+string(p.AppendComment(nil)))
	w.info = append(w.info, p.Info)
	w.bytes += len(p.Head) + len(p.Tail)
}

// TestWatch: a watch tells of each packet whose it is and what came of it, until it ends.
func TestWatch(t *testing.T) {
	g := newSiege(t)
	var atA, atB watched
	stopA, stopB := g.a.dev.Watch(&atA), g.b.dev.Watch(&atB)
	err := errors.Join(
		g.b.qp.PostRecv(&roce.RecvWR{WRID: 70, SGList: []roce.SGE{g.b.mr.SGE(0, 100)}}),
		g.a.qp.PostSend(&roce.SendWR{
			WRID: 7, Opcode: roce.OpSend, Flags: roce.SendSignaled,
			SGList: []roce.SGE{g.a.mr.SGE(0, 62)},
		}))
	if err != nil {
		t.Fatal(err)
	}
	done := func() bool {
		var wcs [4]roce.Completion
		n, err := g.a.cq.Poll(wcs[:])
		return err != nil || n > 0
	}
	end := g.clock.Now() + roce.Second
	if err := g.network.Run(g.clock, end, done, g.a.dev, g.b.dev); err != nil {
		t.Fatal(err)
	}
	a, b := g.a.qp.QPN(), g.b.qp.QPN()
	want := []string{
		fmt.Sprintf("out qp 0x%06x peer 0x%06x wr 7 sent", a, b),
		fmt.Sprintf("in qp 0x%06x peer 0x%06x accepted", a, b),
	}
	if !slices.Equal(atA.lines, want) {
		t.Errorf("at A: %q, want %q", atA.lines, want)
	}
	want = []string{
		fmt.Sprintf("in qp 0x%06x peer 0x%06x wr 70 accepted", b, a),
		fmt.Sprintf("out qp 0x%06x peer 0x%06x sent", b, a),
	}
	if !slices.Equal(atB.lines, want) {
		t.Errorf("at B: %q, want %q", atB.lines, want)
	}
	stopA()
	stopA() // is nothing
	g.talk()
	if len(atA.lines) != 2 || len(atB.lines) <= 2 {
		t.Errorf("after the end of one: %q, %q", atA.lines, atB.lines)
	}
	stopB()
}

// TestWatchHostile: what is dropped is shown with the name of the counter that counts it.
func TestWatchHostile(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			g := newSiege(t)
			var seen watched
			defer g.b.dev.Watch(&seen)()
			frame := tt.change(bytes.Clone(g.tap.frames[0]))
			if tt.reseal {
				reseal(frame)
			}
			inject(t, g.attacker, frame)
			for g.b.dev.Progress() {
				continue
			}
			want := capture.Info{Verdict: "dropped"}
			want.Reason = strings.TrimPrefix(tt.counter, "drop_")
			switch tt.counter {
			case "duplicate_request":
				want = capture.Info{Verdict: "duplicate"}
			case "out_of_sequence":
				want.Reason = "psn_gap"
			case "drop_wrong_service", "drop_bad_source", "drop_bad_pkey", "drop_bad_icrc":
				// Found by the QP, whose reasons have names of their own.
				want.Reason = strings.TrimPrefix(strings.TrimPrefix(want.Reason, "bad_"), "wrong_")
			}
			if len(seen.info) == 0 || seen.bytes < len(frame) {
				t.Fatalf("%d packets of %d bytes seen", len(seen.info), seen.bytes)
			}
			if got := seen.info[0]; got.Verdict != want.Verdict || got.Reason != want.Reason {
				t.Errorf("%s: %s, want %s: %s", got.Verdict, got.Reason, want.Verdict, want.Reason)
			}
		})
	}
}

// TestWatchDoesNotAllocate counts the allocations of messages that are captured.
func TestWatchDoesNotAllocate(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{})
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	writer := capture.New(io.Discard, capture.Config{Interface: "a"})
	defer writer.Close()
	defer devA.Watch(writer)()
	message := messageOf(t, network, clock, a, b)
	for range 100 { // fill the free lists
		message()
	}
	if n := testing.AllocsPerRun(200, message); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// messageOf returns what moves a message of 64 bytes.
func messageOf(
	t testing.TB, network *sim.Network, clock *sim.VirtualClock, a, b *side,
) func() {
	receive := &roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 64)}}
	send := &roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 64)},
	}
	var wcs [4]roce.Completion
	completed := 0
	done := func() bool {
		for _, s := range [2]*side{a, b} {
			n, err := s.cq.Poll(wcs[:])
			if err != nil {
				t.Error(err)
			}
			completed += n
		}
		return completed == 2
	}
	machines := []sim.Machine{a.dev, b.dev}
	return func() {
		completed = 0
		if err := errors.Join(b.qp.PostRecv(receive), a.qp.PostSend(send)); err != nil {
			t.Error(err)
		}
		if err := network.Run(clock, clock.Now()+roce.Second, done, machines...); err != nil {
			t.Error(err)
		}
	}
}

var _ engine.PacketTap = (*capture.Writer)(nil)
