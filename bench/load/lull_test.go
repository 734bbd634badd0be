package load

import (
	"errors"
	"testing"
	"time"

	"xroce/roce"
)

// TestUnanswered: an end of which nothing comes any more is given up, and one that is slow is not.
func TestUnanswered(t *testing.T) {
	at := time.Unix(0, 0)
	c := &conn{now: func() time.Time { return at }}
	polls := 0
	nothing := func() ([]roce.Completion, error) {
		polls++
		at = at.Add(time.Millisecond)
		if at.Sub(time.Unix(0, 0)) > 2*lullLimit {
			t.Fatal("waits for ever")
		}
		return []roce.Completion{{Opcode: roce.WCSend}}, nil
	}
	if _, err := c.awaitAnswer(nothing); !errors.Is(err, errUnanswered) {
		t.Errorf("nothing comes: %v", err)
	}
	if waited := at.Sub(time.Unix(0, 0)); waited <= lullLimit {
		t.Errorf("given up after %v", waited)
	}
	for range 3 {
		polls = 0
		late := func() ([]roce.Completion, error) {
			at = at.Add(lullLimit / 4)
			if polls++; polls < 2*pollsOfLull {
				at = at.Add(-lullLimit/4 + time.Millisecond)
				return nil, nil
			}
			return []roce.Completion{{Opcode: roce.WCRecv}}, nil
		}
		if came, err := c.awaitAnswer(late); came != 1 || err != nil {
			t.Errorf("%d came late: %v", came, err)
		}
	}
}
