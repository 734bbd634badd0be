package msg

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestStormOfAdverts: a peer announces other slots again and again, each time as many bytes as may
// be. We have a copy of those in use and of those that come, and no more.
func TestStormOfAdverts(t *testing.T) {
	l := newLiar(t, Config{})
	e := l.c.endpoint
	for n := uint32(1); n < 100; n++ {
		l.control(Control{Type: TypeAdvert, ID: n, Number: 4, Len: maxAdvert / 4})
		if u := e.Usage(); u.Memory > 2*maxAdvert+2*int64(l.c.wanted()) {
			t.Fatalf("%d bytes", u.Memory)
		}
		must(t, l.c.Send(l.now, &Send{Pieces: [][]byte{{1}}}))
		l.settle()
	}
	l.control(Control{Type: TypeAdvert, ID: 100, Number: 4, Len: maxAdvert / 4})
	l.control(Control{Type: TypeAdvert, ID: 101, Number: 4, Len: maxAdvert / 4})
	l.wantBroken(ErrEpoch) // it does not wait for the answer
}

// TestAdvertBeyondTheBudget: what we asked for there is memory for, always; more only within the
// budget.
func TestAdvertBeyondTheBudget(t *testing.T) {
	for _, c := range []struct {
		slots uint16
		size  uint64
		want  error
	}{
		{32, SlotLen(1024), nil},
		{33, SlotLen(1024), ErrQuota},
		{4, 1 << 20, ErrQuota},
	} {
		t.Run(fmt.Sprint(c.slots, " of ", c.size), func(t *testing.T) {
			l := newLiar(t, Config{Registered: 70_000})
			l.control(Control{Type: TypeAdvert, ID: 1, Number: c.slots, Len: c.size})
			l.settle()
			if !errors.Is(l.c.Err(), c.want) {
				t.Errorf("%v, not %v", l.c.Err(), c.want)
			}
			if c.want == nil {
				return
			}
			if m := l.said[len(l.said)-1]; m.Type != TypeBye || m.Status != StatusQuota ||
				l.c.endpoint.count[QuotaEnds] != 1 {
				t.Errorf("the last words are %v", m)
			}
			// Who reads it learns what was wanted, and what there is.
			told := fmt.Sprintf("%d slots of %d bytes", c.slots, c.size)
			if text := l.c.Err().Error(); !strings.Contains(text, told) ||
				!strings.Contains(text, "of 70000 bytes") {
				t.Errorf("says %q", text)
			}
			l.nothingLeft()
		})
	}
}

// TestAdvertIsRefusedWithItsBounds: a peer that announces more than there may be is named with
// what it announced and with what it may.
func TestAdvertIsRefusedWithItsBounds(t *testing.T) {
	l := newLiar(t, Config{})
	l.control(Control{Type: TypeAdvert, ID: 1, Number: 4096, Len: 1 << 20})
	l.wantBroken(ErrRange)
	text := l.c.Err().Error()
	for _, want := range []string{
		"4096 slots of 1048576 bytes", fmt.Sprint(MaxSlots),
		fmt.Sprint(maxAdvert),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %s", text, want)
		}
	}
}
