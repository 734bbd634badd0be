package gen_test

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/gen"
	"xroce/roce/wire"
)

// shell puts frames behind so many bytes, in segments what is longer than one frame has room for.
type shell struct {
	header, room int
	rest         []byte
}

func (s *shell) wrap(most int) *gen.Wrap {
	return &gen.Wrap{
		Max: most, One: s.room,
		Put: func(frame, inner []byte) (int, error) {
			s.rest = inner
			return s.next(frame), nil
		},
		Rest: s.next,
		Left: func() int { return (len(s.rest) + s.room - 1) / s.room },
	}
}

func (s *shell) next(frame []byte) int {
	clear(frame[:s.header])
	n := copy(frame[s.header:], s.rest[:min(s.room, len(s.rest))])
	s.rest = s.rest[n:]
	return s.header + n
}

// TestRequesterInOthers: packets of a connection that are put into other frames are kept as they
// went, the longest ones too, and go again so.
func TestRequesterInOthers(t *testing.T) {
	const header, room = 60, 1082
	c := gen.Config{
		Kind: gen.KindRoCE, Path: path(false, false), Sizes: gen.List(room), Fill: gen.FillCount,
		MaxFrame: header + room, Wrap: (&shell{header: header, room: room}).wrap(room),
		RoCE: gen.RoCE{Opcodes: []wire.Opcode{wire.RCSendOnly}, DestQP: 0x11},
	}
	r, err := gen.NewRequester(c, gen.RequesterConfig{QPN: 7, Window: 4, Timeout: 10, Retries: 1})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, c.MaxFrame)
	var went [][]byte
	for n := r.Next(frame, 0, 1); n > 0; n = r.Next(frame, 0, 1) {
		went = append(went, bytes.Clone(frame[:n]))
	}
	if len(went) != 4 || len(went[0]) < c.MaxFrame-3 {
		t.Fatalf("%d packets, the first of %d bytes", len(went), len(went[0]))
	}
	r.Expire(11)
	for i := range went {
		if n := r.Next(frame, 11, 2); !bytes.Equal(frame[:n], went[i]) {
			t.Errorf("packet %d is another one when it goes again", i)
		}
	}
	c.Wrap, c.Sizes = (&shell{header: header, room: 500}).wrap(room), gen.List(600)
	if _, err := gen.NewRequester(c, gen.RequesterConfig{}); !errors.Is(err, gen.ErrConfig) {
		t.Errorf("packets in segments: %v", err)
	}
}
