package msg

import (
	"bytes"
	"errors"
	"testing"

	"xroce/roce/clock"
)

// A slab is a region of a test.
type slab struct {
	b      []byte
	steady bool
	moves  int   // Loads and Stores that were asked for
	fault  error // of the one of that number, from 1 on
	at     int
}

func (s *slab) Len() int     { return len(s.b) }
func (s *slab) Steady() bool { return s.steady }

func (s *slab) Load(off int, dst []byte) {
	s.only(true)
	copy(dst, s.b[off:])
}

func (s *slab) Store(off int, src []byte) {
	s.only(true)
	copy(s.b[off:], src)
}

// only says that the machine may copy steady memory alone.
func (s *slab) only(steady bool) {
	if s.steady != steady {
		panic("the machine touches memory that is not steady, or asks for what is")
	}
}

// move does what a request asks for.
func (s *slab) move(r *Request) error {
	s.only(false)
	if s.moves++; s.moves == s.at {
		return s.fault
	}
	if r.Kind == Load {
		copy(r.Bytes, s.b[r.Off:])
	} else {
		copy(s.b[r.Off:], r.Bytes)
	}
	return nil
}

// regionCases are messages of each protocol.
var regionCases = []struct {
	protocol Protocol
	size     int
}{{Auto, 0}, {Eager, 900}, {Provisioned, 20_000}, {Get, 50_000}, {Put, 50_000}, {Fragments, 50_000}}

// TestRegions: messages go from regions to regions by each protocol, steady or not, to shorter ones
// and longer ones.
func TestRegions(t *testing.T) {
	for _, mode := range []Mode{Keep, LocalOnly} {
		d := newDuo(t, Config{Mode: mode})
		for _, c := range regionCases {
			for variant := range 8 {
				data := pattern(variant, c.size)
				room := []int{c.size, c.size/2 + 1}[variant/4]
				from := &slab{b: data, steady: variant&1 != 0}
				to := &slab{b: make([]byte, room), steady: variant&2 != 0}
				s := &Send{Region: from, Protocol: c.protocol}
				r := &Receive{Region: to}
				must(t, d.b.endpoint.Receive(d.now, r))
				must(t, d.ca.Send(d.now, s))
				d.settle()
				if d.a.endpoint.NextSent() != s || d.b.endpoint.NextReceived() != r {
					t.Fatalf("%v of %d: it does not end", c.protocol, c.size)
				}
				n := min(c.size, room)
				if s.Err != nil || r.Err != nil || r.Length != n || r.Whole != c.size ||
					!bytes.Equal(to.b[:n], data[:n]) || bytes.Count(to.b[n:], []byte{0}) != room-n {
					t.Errorf("%v of %d: %v, %v, %d", s.Choice, c.size, s.Err, r.Err, r.Length)
				}
				if c.protocol != Auto && mode == Keep && s.Choice.Protocol != c.protocol {
					t.Errorf("%v of %d goes by %v", c.protocol, c.size, s.Choice)
				}
			}
		}
	}
}

var errGone = errors.New("gone")

// TestRegionThatIsGone: memory that cannot be had ends its message with the reason, and nothing
// wrong is received; of one in fragments, of which a part is there already, it ends the connection.
func TestRegionThatIsGone(t *testing.T) {
	for _, c := range []struct {
		protocol Protocol
		size, at int
		ends     bool
	}{{Eager, 900, 1, false}, {Provisioned, 20_000, 1, false}, {Fragments, 20_000, 2, true}} {
		d := newDuo(t, Config{})
		s := &Send{
			Region:   &slab{b: pattern(1, c.size), fault: errGone, at: c.at},
			Protocol: c.protocol,
		}
		behind := &Send{Pieces: [][]byte{pattern(2, 10)}}
		r := &Receive{Pieces: [][]byte{make([]byte, c.size)}}
		must(t, d.b.endpoint.Receive(d.now, r))
		must(t, d.ca.Send(d.now, s))
		must(t, d.ca.Send(d.now, behind))
		d.settle()
		if !errors.Is(s.Err, errGone) {
			t.Errorf("%v: %v", c.protocol, s.Err)
		}
		switch {
		case c.ends && (d.ca.Err() != s.Err || r.Err == nil || d.cb.Err() != r.Err):
			t.Errorf("%v: %v, %v, %v", c.protocol, d.ca.Err(), d.cb.Err(), r.Err)
		case !c.ends && (behind.Err != nil || r.Err != nil || r.Length != 10):
			t.Errorf("%v: the next message: %v, %v", c.protocol, behind.Err, r.Err)
		}
	}
}

// TestReceiveThatIsGone: memory that a message cannot be stored in ends its receive with the
// reason, and of one in fragments its sender is told. The connection goes on.
func TestReceiveThatIsGone(t *testing.T) {
	for _, c := range regionCases[1:] {
		if c.protocol == Get || c.protocol == Put {
			continue // the device stores it
		}
		d := newDuo(t, Config{})
		s := &Send{Pieces: [][]byte{pattern(1, c.size)}, Protocol: c.protocol}
		r := &Receive{Region: &slab{b: make([]byte, c.size), fault: errGone, at: 1}}
		must(t, d.b.endpoint.Receive(d.now, r))
		must(t, d.ca.Send(d.now, s))
		d.settle()
		if !errors.Is(r.Err, errGone) || r.Length != 0 || r.Whole != c.size {
			t.Errorf("%v: %v, %d of %d", c.protocol, r.Err, r.Length, r.Whole)
		}
		var status *StatusError
		if told := errors.As(s.Err, &status); told != (c.protocol == Fragments) {
			t.Errorf("%v: its sender: %v", c.protocol, s.Err)
		}
		d.a.endpoint.NextSent()
		d.b.endpoint.NextReceived()
		d.send(pattern(3, 5000))
	}
}

// TestRegionThatIsSlow: a region that is long in coming holds up the messages behind it and those
// of no other connection; it may be taken back meanwhile, and may end with the connection.
func TestRegionThatIsSlow(t *testing.T) {
	for _, end := range []string{"comes", "cancelled", "aborted"} {
		w := newWorld(t, 1)
		a, b, other := w.node(Config{}), w.node(Config{}), w.node(Config{})
		ca, _ := w.join(a, b, allCapabilities)
		co, _ := w.join(a, other, allCapabilities)
		var waiting []*Request
		w.slow = func(r *Request) bool {
			if r.Kind == Load || r.Kind == Store {
				waiting = append(waiting, r)
			}
			return r.Kind == Load || r.Kind == Store
		}
		s := &Send{Region: &slab{b: pattern(1, 100)}}
		behind, beside := &Send{Pieces: [][]byte{{1}}}, &Send{Pieces: [][]byte{{2}}}
		into := &Receive{Region: &slab{b: make([]byte, 100)}}
		must(t, b.endpoint.Receive(w.now, into))
		must(t, ca.Send(w.now, s))
		must(t, ca.Send(w.now, behind))
		must(t, co.Send(w.now, beside))
		w.settle()
		if a.endpoint.NextSent() != beside || a.endpoint.NextSent() != nil || len(waiting) != 1 {
			t.Fatalf("%s: %d are asked for", end, len(waiting))
		}
		var want error
		switch end {
		case "cancelled":
			want = ErrCancelled
			for range 2 {
				if !a.endpoint.CancelSend(w.now, s) {
					t.Error("it cannot be taken back")
				}
			}
		case "aborted":
			want = errHungUp
			ca.Abort(w.now, errHungUp)
		}
		w.settle()
		if s.state == sendIdle {
			t.Errorf("%s: its memory is given back while it is copied", end)
		}
		r := waiting[0]
		a.endpoint.Answer(w.now, r, Memory{}, r.Region.(*slab).move(r))
		w.settle()
		if !errors.Is(s.Err, want) || s.state != sendIdle {
			t.Errorf("%s: %v", end, s.Err)
		}
		if end != "comes" {
			continue
		}
		if len(waiting) != 2 || b.endpoint.NextReceived() != nil {
			t.Fatal("it is received before it is stored")
		}
		ca.Abort(w.now, errHungUp)
		w.now += clock.Second
		w.settle()
		r = waiting[1]
		b.endpoint.Answer(w.now, r, Memory{}, r.Region.(*slab).move(r))
		if b.endpoint.NextReceived() != into || into.Err != nil || into.Length != 100 {
			t.Errorf("a message that came whole: %v", into.Err)
		}
	}
}
