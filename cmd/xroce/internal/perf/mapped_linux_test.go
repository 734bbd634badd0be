package perf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"xroce/cmd/perfdump"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// mappedFile is a file as long as the memory of a test.
func mappedFile(t *testing.T, c *Config) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "memory"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	l, err := newLayout(c, ownSystem)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(l.size())); err != nil {
		t.Fatal(err)
	}
	return f
}

// A cutter is a Reporter that cuts a file off when the test begins.
type cutter struct {
	*Record
	t    *testing.T
	file *os.File
	cut  chan struct{} // is closed then
}

// Begins implements Reporter.
func (r *cutter) Begins(*Info) {
	if err := r.file.Truncate(0); err != nil {
		r.t.Error(err)
	}
	close(r.cut)
}

// A cutWaiter is a Reporter of the other end, which begins when the file is cut off. Else all could
// be written before.
type cutWaiter struct {
	*Record
	t   *testing.T
	cut chan struct{}
}

// Begins implements Reporter.
func (r *cutWaiter) Begins(*Info) {
	select {
	case <-r.cut:
	case <-time.After(timeout.Scaled(20 * time.Second)):
		r.t.Error("the end whose memory it is does not begin")
	}
}

// TestMappedCutOff: the file of --mmap gets shorter by somebody else's doing. The test fails,
// with a reason and without a result; the process lives.
func TestMappedCutOff(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, tt := range []struct {
		name   string
		test   Test
		end    int // whose memory it is
		change func(c *Config)
	}{
		{"send-lat", Test{Send, true}, 0, func(*Config) {}},
		{"send-lat inline", Test{Send, true}, 0, func(c *Config) { c.Inline, c.Size = 100, 100 }},
		{"write-lat", Test{Write, true}, 0, func(*Config) {}},
		{"write-lat server", Test{Write, true}, 1, func(*Config) {}},
		{"write-lat inline", Test{Write, true}, 1, func(c *Config) { c.Inline, c.Size = 100, 100 }},
		{"send-bw inline", Test{Verb: Send}, 0, func(c *Config) { c.Inline, c.Size = 100, 100 }},
		{"send-bw UD", Test{Verb: Send}, 0, func(c *Config) { c.Type, c.Size = roce.TypeUD, 1000 }},
		{"write-bw", Test{Verb: Write}, 1, func(*Config) {}},
		{"read-bw", Test{Verb: Read}, 0, func(*Config) {}},
		{"read-lat", Test{Read, true}, 1, func(*Config) {}},
		{"atomic-lat", Test{Atomic, true}, 0, func(*Config) {}},
		{"write-bw --odp", Test{Verb: Write}, 0, func(c *Config) { c.ODP = true }},
		{"write-lat --odp", Test{Write, true}, 0, func(c *Config) { c.ODP = true }},
		{"write-bw warm", Test{Verb: Write}, 0, func(c *Config) { c.WarmUp = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := brief(tt.test)
			tt.change(&c)
			p := newPair(t, c)
			p.hurries(timeout.Scaled(time.Second)) // for what is set up, too
			o := &p.ends[tt.end]
			o.File = mappedFile(t, &c)
			cut := make(chan struct{})
			o.Tell = &cutter{&p.records[tt.end], t, o.File, cut}
			p.ends[1-tt.end].Tell = &cutWaiter{&p.records[1-tt.end], t, cut}
			p.wantsNoResult(t, p.run(t))
		})
	}
}

// TestMappedCutOffBefore: the same before the memory is filled, and where it is kept.
func TestMappedCutOffBefore(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	c := brief(Test{Write, true})
	c.File = mappedFile(t, &c)
	dev := device(t, network, 1, engine.Options{})
	e := &end{cfg: &c, dev: dev}
	if e.at, err = newLayout(&c, ownSystem); err != nil {
		t.Fatal(err)
	}
	if e.region, err = newRegion(dev, &c, e.at.size()); err != nil {
		t.Fatal(err)
	}
	defer e.deregister()
	if err := c.File.Truncate(0); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"filled":      e.initMemory(wire.MTU1024),
		"kept before": beginDump(&perfdump.Dump{}, e),
		"kept after":  finishDump(&perfdump.Dump{}, e),
	} {
		if !errors.Is(err, errMemoryGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
