package msg

import (
	"testing"

	"xroce/roce/verbs"
)

// TestFullFramesLeave: a frame that is full leaves at once, however many are on their way; one
// with room waits for more.
func TestFullFramesLeave(t *testing.T) {
	for _, c := range []struct {
		name         string
		protocol     Protocol
		length, want int
	}{
		{"full", Eager, 1024, 5},
		{"with room", Eager, 900, 4},
		{"fragments", Fragments, 8 * 1024, fragmentFrames},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDuo(t, Config{Protocol: c.protocol})
			n := 5
			if c.protocol == Fragments {
				n = 1
			}
			for range n {
				r := &Receive{Pieces: [][]byte{make([]byte, c.length)}}
				must(t, d.b.endpoint.Receive(d.now, r))
				must(t, d.ca.Send(d.now, &Send{Pieces: [][]byte{make([]byte, c.length)}}))
			}
			if c.protocol == Fragments { // until the receiver has said how far
				for d.ca.fragments.Len() == 0 && d.ca.frames == 0 && d.step() {
				}
			}
			if frames := d.frames(d.ca); frames != c.want {
				t.Errorf("%d frames, not %d", frames, c.want)
			}
			d.settle()
		})
	}
}

// frames has a connection write frames while none of them is complete, and returns how many.
func (d *duo) frames(c *Conn) (n int) {
	p := c.User.(*pipe)
	for {
		var wr verbs.SendWR
		got := c.endpoint.NextWork(d.now, &wr)
		if got == nil {
			break
		}
		wr.Inline = append([]byte(nil), wr.Inline...)
		p.queue = append(p.queue, wr)
	}
	for _, wr := range p.queue {
		if wr.Opcode == verbs.OpWriteImm {
			n++
		}
	}
	return n
}

// TestReasonOfTheFirst: the message that has a large slot made says so, those behind it say that
// it is there.
func TestReasonOfTheFirst(t *testing.T) {
	d := newDuo(t, Config{})
	for i, want := range []Reason{Enlarge, HasLarge} {
		if s := d.send(pattern(i, 5000)); s.Choice.Why != want || s.Choice.Protocol != Provisioned {
			t.Errorf("message %d: %v", i, s.Choice)
		}
	}
}
