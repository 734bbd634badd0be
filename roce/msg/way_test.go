package msg

import "testing"

// TestReceiveSaysHowItCame: a receive says which slots its message was in, at once or kept.
func TestReceiveSaysHowItCame(t *testing.T) {
	for _, c := range []struct {
		config Config
		length int
		want   Protocol
	}{
		{Config{}, 1024, Eager},
		{Config{}, 1025, Provisioned},
		{Config{Protocol: Provisioned}, 10, Provisioned},
		{Config{Protocol: Eager}, 1025, Fragments},
		{Config{}, 200_000, Get},
	} {
		for _, late := range []bool{false, true} {
			d := newDuoOf(t, c.config, Config{})
			r := &Receive{Pieces: [][]byte{make([]byte, c.length)}}
			s := &Send{Pieces: [][]byte{pattern(1, c.length)}}
			if late {
				must(t, d.ca.Send(d.now, s))
				d.settle()
			}
			must(t, d.b.endpoint.Receive(d.now, r))
			if !late {
				must(t, d.ca.Send(d.now, s))
			}
			d.settle()
			if r.Protocol != c.want || r.Length != c.length {
				t.Errorf("%d bytes by %v, forced %v, late %v: %d by %v", c.length,
					s.Choice.Protocol, c.config.Protocol, late, r.Length, r.Protocol)
			}
		}
	}
}
