package perf

import (
	"errors"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
)

// TestPlansDiffer: what both ends must have been told alike and were not ends the run at
// both, before a packet is sent, with what it is here and there.
func TestPlansDiffer(t *testing.T) {
	for _, tt := range []struct {
		name        string
		test        Test
		change      func(c *Config)
		here, there string
	}{
		{"-n", Test{Verb: Send}, func(c *Config) { c.Iters = 1000 }, "-n 200", "-n 1000"},
		{"-s", Test{Verb: Write}, func(c *Config) { c.Size = 64 }, "-s 4096", "-s 64"},
		{"-q", Test{Verb: Read}, func(c *Config) { c.QPs = 3 }, "-q 1", "-q 3"},
		{"-c", Test{Verb: Send}, func(c *Config) { c.Type = roce.TypeUC }, "-c RC", "-c UC"},
		{"-b", Test{Verb: Atomic}, func(c *Config) { c.Both = true }, "nothing of that", "-b"},
		{"-a", Test{Send, true}, func(c *Config) { c.All = true }, "-s 4096", "-a"},
		{
			"-D",
			Test{Verb: Send},
			func(c *Config) { c.Duration = time.Minute },
			"-n 200", "-D 60",
		},
		{
			"--report_gbits",
			Test{Verb: Write},
			func(c *Config) { c.Gbits = true },
			"nothing of that", "--report_gbits",
		},
		{"test", Test{Verb: Send}, func(c *Config) { c.Test.Verb = Write }, "send-bw", "write-bw"},
		{
			"kind",
			Test{Write, true},
			func(c *Config) { c.Test.Latency = false },
			"write-lat", "write-bw",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, brief(tt.test))
			packets := 0
			p.network.Observe(func(e *sim.Event) {
				if e.Kind == sim.Sent {
					packets++
				}
			})
			tt.change(&p.ends[1].Config)
			errs := p.run(t)
			p.wantsNoResult(t, errs)
			for i, want := range []string{
				tt.here + " here, " + tt.there + " at the peer",
				tt.there + " here, " + tt.here + " at the peer",
			} {
				if errs[i] == nil || !strings.Contains(errs[i].Error(), want) {
					t.Errorf("end %d: %v, want %q in it", i, errs[i], want)
				}
			}
			if packets > 0 {
				t.Errorf("%d packets", packets)
			}
		})
	}
}

// TestDifferingTools: with a tool, which tells no plan, a run of which the ends were told
// different things ends at both, without a result.
func TestDifferingTools(t *testing.T) {
	t.Parallel()
	more := func(c *Config) { c.Iters *= 5 }
	fewer := func(c *Config) { c.Iters /= 5 }
	larger := func(c *Config) { c.Size *= 4 }
	smaller := func(c *Config) { c.Size /= 4 }
	both := func(c *Config) { c.Both = true }
	sends := func(c *Config) { c.Test.Verb = Send }
	bw, lat, write := Test{Verb: Send}, Test{Send, true}, Test{Verb: Write}
	waits := map[string]func() [2]error{}
	pairs := map[string]*pair{}
	for _, tt := range []struct {
		name           string
		test           Test
		client, server func(c *Config)
	}{
		{"the server expects more", bw, nil, more},
		{"the server expects fewer", bw, nil, fewer},
		{"the server expects shorter ones", bw, nil, smaller},
		{"the server expects longer ones", bw, nil, larger},
		{"the server sends, too", bw, nil, both},
		{"the client expects some, too", bw, both, nil},
		{"both, and the server more", bw, both, func(c *Config) { both(c); more(c) }},
		{"both, and the client more", bw, func(c *Config) { both(c); more(c) }, both},
		{"more rounds", lat, nil, more},
		{"fewer rounds", lat, nil, fewer},
		{"longer rounds", lat, nil, larger},
		{"shorter rounds", lat, nil, smaller},
		{"the server expects SENDs", write, nil, sends},
		{"the client SENDs", write, sends, nil},
		{"the client WRITEs more than there is", write, larger, nil},
	} {
		c := brief(tt.test)
		c.Size = 1 << 15
		p := newPair(t, c)
		p.hurries(3 * time.Second)
		for i, change := range []func(c *Config){tt.client, tt.server} {
			p.ends[i].asTool = true
			if change != nil {
				change(&p.ends[i].Config)
			}
		}
		pairs[tt.name], waits[tt.name] = p, p.start(t)
	}
	for name, p := range pairs {
		t.Run(name, func(t *testing.T) { p.wantsNoResult(t, waits[name]()) })
	}
}

// TestPeerIsThrough: a receiver that expects more than a tool sends gives up when the tool has gone
// on, and says so, long before the time in which nothing happens is over.
func TestPeerIsThrough(t *testing.T) {
	t.Parallel()
	p := newPair(t, brief(Test{Verb: Send}))
	p.ends[0].asTool = true
	p.ends[1].Iters *= 5
	p.ends[1].hurry.through = time.Second
	errs := p.run(t)
	p.wantsNoResult(t, errs)
	if !errors.Is(errs[1], errThrough) {
		t.Errorf("server: %v", errs[1])
	}
}

// TestRefusedRequest: the end whose memory is smaller than what the peer writes says that
// it refused that; the one that wrote says which work failed.
func TestRefusedRequest(t *testing.T) {
	c := brief(Test{Verb: Write})
	c.Size = 1 << 16
	p := newPair(t, c)
	p.ends[0].asTool = true
	p.ends[1].Size = 64
	errs := p.run(t)
	p.wantsNoResult(t, errs)
	var w *roce.WorkError
	if !errors.As(errs[0], &w) || w.Status != roce.StatusRemAccessErr || w.Opcode != roce.WCWrite {
		t.Errorf("client: %v", errs[0])
	}
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "refused a request of the peer") {
		t.Errorf("server: %v", errs[1])
	}
}
