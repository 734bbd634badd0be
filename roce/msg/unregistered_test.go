package msg

import (
	"bytes"
	"testing"
)

// TestMemoryThatIsNotRegistered: a device does not register the memory of a message, at the sender
// or at the receiver, over one rail and over two. It goes in parts then, which its sender is told
// with the reason, and which is counted where it was.
func TestMemoryThatIsNotRegistered(t *testing.T) {
	for _, c := range []struct {
		name  string
		rails int
		at    int // 0 for the sender
		why   Reason
	}{
		{"sender", 1, 0, Unregistered},
		{"receiver", 1, 1, PeerUnregistered},
		{"sender of two rails", 2, 0, Unregistered},
		{"receiver of two rails", 2, 1, PeerUnregistered},
	} {
		for _, p := range []Protocol{Get, Put} {
			config := Config{Rails: c.rails, Protocol: p}
			x := newRailed(t, 1, allCapabilities, config, config)
			x.settle()
			nodes := [2]*node{x.a, x.b}
			var asked []*Request
			x.slow = func(r *Request) bool {
				if r.Kind != Expose || r.Conn.endpoint != nodes[c.at].endpoint {
					return false
				}
				asked = append(asked, r)
				return true
			}
			data, buf := pattern(3, 300_000), make([]byte, 300_000)
			s := &Send{Pieces: [][]byte{data}}
			must(t, x.ca.Send(x.now, s))
			must(t, x.b.endpoint.Receive(x.now, &Receive{Pieces: [][]byte{buf}}))
			x.settle()
			if len(asked) != 1 {
				t.Fatalf("%s by %v: asked for memory %d times", c.name, p, len(asked))
			}
			nodes[c.at].endpoint.Answer(x.now, asked[0], Memory{}, errNoMemory)
			x.settle()
			if x.a.endpoint.NextSent() != s || s.Err != nil || !bytes.Equal(buf, data) {
				t.Fatalf("%s by %v: %v", c.name, p, s.Err)
			}
			if s.Choice.Protocol != Fragments || s.Choice.Why != c.why {
				t.Errorf("%s by %v: %v, %v", c.name, p, s.Choice.Protocol, s.Choice.Why)
			}
			for i, n := range nodes {
				want := uint64(0)
				if i == c.at {
					want = 1
				}
				if got := n.endpoint.Snapshot()[NotRegistered]; got != want {
					t.Errorf("%s by %v: end %d has counted %d", c.name, p, i, got)
				}
			}
		}
	}
}
