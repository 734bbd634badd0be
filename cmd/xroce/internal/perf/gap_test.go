package perf

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// An interrupter is a Reporter that ends a context when both ends have begun the test.
type interrupter struct {
	Record
	begun *sync.WaitGroup
	end   context.CancelFunc
}

// Begins implements Reporter.
func (r *interrupter) Begins(*Info) {
	r.begun.Done()
	r.begun.Wait()
	r.end()
}

// TestInterruptedGap: the time before each message of a latency test is one in which the test
// can be interrupted.
func TestInterruptedGap(t *testing.T) {
	for _, test := range []Test{{Send, true}, {Write, true}, {Read, true}, {Atomic, true}} {
		for _, events := range []bool{false, true} {
			if events && test.Verb == Write {
				continue // there is no such test
			}
			c := brief(test)
			c.Gap, c.Events = time.Hour, events
			p := newPair(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p.ctx = ctx
			var begun sync.WaitGroup
			begun.Add(len(p.ends))
			for i := range p.ends {
				p.ends[i].Tell = &interrupter{begun: &begun, end: cancel}
			}
			// The one that ends first hangs up, which the other may hear before.
			errs := p.run(t)
			if errs[0] == nil || errs[1] == nil ||
				!errors.Is(errors.Join(errs[0], errs[1]), context.Canceled) {
				t.Errorf("%s: client %v, server %v", test.Name(), errs[0], errs[1])
			}
		}
	}
}
