package perf

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A muteConn is a connection of which only so many writes arrive, all when it is negative.
type muteConn struct {
	net.Conn
	mu     *sync.Mutex
	writes *int // how many there were
	most   int
}

// Write implements net.Conn.
func (c muteConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.writes++
	if c.most >= 0 && *c.writes > c.most {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// cut makes a pair of which one end falls silent after so many writes, never when they
// are negative, and counts those.
func cut(t *testing.T, c Config, silent, most int) (p *pair, writes *int) {
	t.Helper()
	p, writes = newPair(t, c), new(int)
	var mu sync.Mutex
	p.wrap = func(end int, conn net.Conn) net.Conn {
		if end != silent {
			return conn
		}
		return muteConn{conn, &mu, writes, most}
	}
	if most >= 0 {
		p.hurries(time.Second)
	}
	return p, writes
}

// TestPeerFallsSilent: at whatever step of the exchange a peer falls silent, with its
// connection open, the other end does not wait for ever, and has no result.
func TestPeerFallsSilent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		test   Test
		change func(c *Config)
	}{
		{"send-bw", Test{Verb: Send}, func(*Config) {}},
		{"send-bw -b", Test{Verb: Send}, func(c *Config) { c.Both = true }},
		{"write-bw", Test{Verb: Write}, func(*Config) {}},
		{"read-bw -b -q 2", Test{Verb: Read}, func(c *Config) { c.Both, c.QPs = true, 2 }},
		{"send-lat -e", Test{Send, true}, func(c *Config) { c.Events = true }},
		{"atomic-lat", Test{Atomic, true}, func(*Config) {}},
	} {
		c := brief(tt.test)
		c.Iters = 20
		tt.change(&c)
		for silent, name := range []string{"client", "server"} {
			t.Run(tt.name+" "+name, func(t *testing.T) {
				t.Parallel()
				p, writes := cut(t, c, silent, -1)
				if errs := p.run(t); errs[0] != nil || errs[1] != nil {
					t.Fatalf("client %v, server %v", errs[0], errs[1])
				}
				var pairs []*pair
				var waits []func() [2]error
				// The last word is "done", and to hang up is as good.
				for most := range *writes - 1 {
					p, _ := cut(t, c, silent, most)
					pairs, waits = append(pairs, p), append(waits, p.start(t))
				}
				for most, p := range pairs {
					errs := waits[most]()
					if heard := 1 - silent; errs[heard] == nil || len(p.records[heard].Rows) > 0 {
						t.Errorf("after %d of %d writes: error %v, results %+v", most, *writes,
							errs[heard], p.records[heard].Rows)
					}
				}
			})
		}
	}
}
