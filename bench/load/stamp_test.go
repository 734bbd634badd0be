package load

import (
	"testing"
	"time"

	"xroce/xsk"
)

// nowhere is a link that takes frames and does nothing with them.
type nowhere struct{ xsk.Link }

func (nowhere) Transmit([]xsk.TxFrame) {}

// past is how long the link of a test has been there.
const past = time.Duration(1 << 30)

// TestStamp: what counts is the first frame behind arm, and no frame at all is none.
func TestStamp(t *testing.T) {
	l := &stampLink{Link: nowhere{}, start: time.Now().Add(-past)}
	frame := make([]xsk.TxFrame, 1)
	l.Transmit(frame)
	if at := l.at.Load(); at != 0 {
		t.Errorf("a frame before arm was noted at %d", at)
	}
	l.arm()
	l.Transmit(nil)
	if at := l.at.Load(); at != 0 {
		t.Errorf("no frame was noted at %d", at)
	}
	l.Transmit(frame)
	first := l.at.Load()
	if first < int64(past) {
		t.Errorf("noted at %d, %v after the start", first, past)
	}
	l.Transmit(frame)
	if l.at.Load() != first {
		t.Error("the second frame was noted, too")
	}
	l.arm()
	if l.at.Load() != 0 {
		t.Error("arm has forgotten nothing")
	}
}
