package campaign

import (
	"fmt"
	"strings"
	"testing"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// TestTrace keeps the last events and hashes all of what is mixed in.
func TestTrace(t *testing.T) {
	var log strings.Builder
	a, b := &Trace{Log: &log}, &Trace{}
	for i := range 2 * keep {
		a.Note(roce.Time(i)*1000, "note %d", i)
	}
	last := a.Last()
	if a.Events() != 2*keep || len(last) != keep || a.Hash() != b.Hash() {
		t.Errorf("%d events, the last %d of them, hash %#x", a.Events(), len(last), a.Hash())
	}
	if want := fmt.Sprintf("%14s note %d", "127.000us", 2*keep-1); last[keep-1] != want {
		t.Errorf("the last event is %q, want %q", last[keep-1], want)
	}
	if strings.Count(log.String(), "\n") != 2*keep {
		t.Errorf("the log has %d lines", strings.Count(log.String(), "\n"))
	}
	a.Mix(1, 2)
	b.Mix(2, 1)
	if a.Hash() == b.Hash() || a.Hash() == 0 {
		t.Errorf("two orders have the hashes %#x and %#x", a.Hash(), b.Hash())
	}
}

// TestReadFrame reads headers behind IPv4 and IPv6, and less of a frame that is cut off.
func TestReadFrame(t *testing.T) {
	for _, at := range []int{14 + 20 + 8, 14 + 40 + 8} {
		frame := make([]byte, at, at+20)
		frame[12] = 0x08
		if at == 14+40+8 {
			frame[12] = 0x86
		}
		frame = append(frame, byte(wire.RCAck), 0, 0, 0, 0, 0, 0x12, 0x34, 0x80, 0, 0, 9, 0x60,
			0, 0, 1)
		ev := &sim.Event{Kind: sim.Dropped, At: 5, From: MAC(3, 2), To: MAC(0, 0), Frame: frame}
		want := Frame{
			Kind: sim.Dropped, At: 5, From: 3, FromAdapter: 2, Len: len(frame), Opcode: wire.RCAck,
			DestQP: 0x1234, PSN: 9, AckReq: true, Syndrome: 0x60,
		}
		f := ReadFrame(ev)
		if f != want || !f.Acknowledges() {
			t.Errorf("at %d: %+v, want %+v", at, f, want)
		}
		a, b := &Trace{}, &Trace{}
		a.Frame(&f)
		f.PSN++
		b.Frame(&f)
		if a.Hash() == b.Hash() || !strings.Contains(a.Last()[0], "3.2->0 dropped") {
			t.Errorf("frames in the trace: %#x and %#x, %q", a.Hash(), b.Hash(), a.Last())
		}
		ev.Frame = frame[:len(frame)-1]
		if f := ReadFrame(ev); f.Opcode != 0 || f.Len != len(frame)-1 {
			t.Errorf("of a frame that is cut off: %+v", f)
		}
	}
}
