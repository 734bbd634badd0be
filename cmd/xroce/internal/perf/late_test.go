package perf

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A rowHook is a Reporter that has something done with each result it is told.
type rowHook struct {
	*Record
	do func(rows int)
}

// Row implements Reporter.
func (h rowHook) Row(i *Info, row *Row) {
	h.Record.Row(i, row)
	h.do(len(h.Rows))
}

// How many messages a test of late ones has of each size, and how many of the first are late.
const (
	lateIters = 40
	lateCount = 30
)

// A latePair is a pair that runs all sizes over an unreliable service. Messages of the first are
// given up for lost before they come.
type latePair struct {
	*pair
	*testing.T
	told [2]func(rows int) // what is done when an end is told a result
	end  context.CancelFunc
}

func newLatePair(t *testing.T, typ roce.QPType) *latePair {
	t.Helper()
	c := brief(Test{Verb: Send})
	c.Type, c.All, c.Iters, c.RxDepth = typ, true, lateIters, lateIters
	p := &latePair{pair: newPair(t, c), T: t}
	must(t, p.network.SetRules(sim.Rule{
		From: [6]byte{2, 0, 0, 0, 0, 1}, Opcodes: []wire.Opcode{wire.UDSendOnly, wire.UCSendOnly},
		Nth: 5, Times: lateCount, Delay: roce.Time(time.Hour),
	}))
	p.ctx, p.end = context.WithCancel(t.Context())
	t.Cleanup(p.end)
	for i := range p.ends {
		p.ends[i].hurry = patience{through: timeout.Scaled(time.Second)}
		p.told[i] = func(int) {}
		p.ends[i].Tell = rowHook{&p.records[i], func(rows int) { p.told[i](rows) }}
	}
	return p
}

// deliver has what is late come, and does something else until it is there.
func (p *latePair) deliver(there func() bool) {
	server := p.devs[1]
	all := received(p.T, server) + lateCount
	if err := p.network.SetFaults(sim.Faults{}); err != nil {
		p.Error(err)
	}
	limit := time.Now().Add(timeout.Scaled(10 * time.Second))
	for !there() || received(p.T, server) < all {
		if time.Now().After(limit) {
			p.Error("what is late does not come, or is not looked at")
			return
		}
	}
}

// check runs the first two sizes: the largest take their time.
func (p *latePair) check(strays uint64) {
	p.Helper()
	came := uint64(0)
	first := p.told[1]
	p.told[1] = func(rows int) {
		if first(rows); rows == 2 {
			came = received(p.T, p.devs[1])
			p.end()
		}
	}
	errs := p.run(p.T)
	rows := p.records[1].Rows
	if len(rows) < 2 {
		p.Fatalf("client %v, server %v, results %+v", errs[0], errs[1], rows)
	}
	if r := rows[0]; r.Lost != lateCount || r.Iters != lateIters-lateCount || r.Strays != 0 {
		p.Errorf("the size of those that are late: %+v", r)
	}
	if r := rows[1]; r.Lost != 0 || r.Iters != lateIters || r.Strays != strays {
		p.Errorf("the next size: %+v, want %d strays", r, strays)
	}
	if came != 2*lateIters {
		p.Errorf("%d messages came, not %d: the others found no receive", came, 2*lateIters)
	}
}

// TestLateBetweenSizes: with -a messages that come after they were given up for lost, before the
// next size begins, are none of that, and what is sent of it finds its receives.
func TestLateBetweenSizes(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUC, roce.TypeUD} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			p := newLatePair(t, typ)
			p.told[1] = func(rows int) {
				if rows == 1 {
					p.deliver(func() bool { return !p.devs[1].Progress() })
				}
			}
			p.check(0)
		})
	}
}

// TestLateInNextSize: those that come when the next size has begun are strays of it.
func TestLateInNextSize(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUC, roce.TypeUD} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			p := newLatePair(t, typ)
			var begins atomic.Bool
			p.told[0] = func(rows int) { begins.Store(rows == 1) }
			p.wrap = func(end int, conn net.Conn) net.Conn {
				if end == 1 {
					return conn
				}
				return interposed{conn, &begins, func() {
					p.deliver(func() bool {
						time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
						return posted(p.devs[1]) == lateIters
					})
				}}
			}
			p.check(lateCount)
		})
	}
}
