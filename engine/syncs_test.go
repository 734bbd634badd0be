package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A slowDisk is memory that becomes persistent when the test says so.
type slowDisk struct {
	begun chan struct{} // gets a value when a sync has begun
	ends  chan error    // how it ends
	freed atomic.Bool   // the memory is given back
	late  atomic.Bool   // a sync met memory that was
}

func newSlowDisk() *slowDisk {
	return &slowDisk{begun: make(chan struct{}, 64), ends: make(chan error, 64)}
}

func (d *slowDisk) sync(int, int) error {
	d.begun <- struct{}{}
	err := <-d.ends
	if d.freed.Load() {
		d.late.Store(true)
	}
	return err
}

// A flushPair is a connection whose second end has memory on a slow disk, and another
// connection of the same two devices.
type flushPair struct {
	a, b  *side
	c, d  *side
	disk  *slowDisk
	mr    *engine.MR // of b, on the disk
	devs  [2]*engine.Device
	flush roce.SendWR
}

func newFlushPair(t *testing.T, direct bool) *flushPair {
	t.Helper()
	clock := engine.NewSystemClock()
	p := &flushPair{disk: newSlowDisk()}
	p.devs[0], p.devs[1] = simPair(t, newNetwork(t, 1, clock, sim.Faults{}),
		engine.Options{Clock: clock, Direct: direct})
	p.a, p.b = newSide(t, p.devs[0]), newSide(t, p.devs[1])
	p.c, p.d = newSide(t, p.devs[0]), newSide(t, p.devs[1])
	connectWith(t, p.a, p.b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
	connectWith(t, p.c, p.d, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
	const access = mem.LocalWrite | mem.RemoteWrite | mem.FlushPersistent
	err := p.b.qp.Modify(&roce.Attr{Access: access}, roce.AttrAccess)
	if err != nil {
		t.Fatal(err)
	}
	p.mr, err = p.devs[1].RegMRWith(p.b.pd, make([]byte, 4096), engine.MROptions{
		Access: access, Sync: p.disk.sync,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.flush = roce.SendWR{
		WRID: 9, Opcode: roce.OpFlush, Flags: roce.SendSignaled, Flush: wire.FlushPersistent,
		FlushLength: 8, RemoteAddr: p.mr.Addr(), RKey: p.mr.RKey(),
	}
	return p
}

// post has the FLUSH begin.
func (p *flushPair) post(t *testing.T) {
	t.Helper()
	if err := p.a.qp.PostSend(&p.flush); err != nil {
		t.Fatal(err)
	}
	<-p.disk.begun
}

// TestFlushHoldsUpNobody: while memory becomes persistent, other connections of the queue go
// on, and what is behind the FLUSH follows it.
func TestFlushHoldsUpNobody(t *testing.T) {
	p := newFlushPair(t, false)
	p.post(t)
	err := p.a.qp.PostSend(&roce.SendWR{
		WRID: 10, Opcode: roce.OpAtomicWrite, Flags: roce.SendSignaled,
		SGList: []roce.SGE{p.a.mr.SGE(0, 8)}, RemoteAddr: p.mr.Addr(), RKey: p.mr.RKey(),
	})
	if err != nil {
		t.Fatal(err)
	}
	exchange(t, p.c, p.d, 1000)
	exchange(t, p.d, p.c, 1000)
	if n := p.a.qp.Snapshot().SendPosted; n != 2 {
		t.Errorf("%d requests are not complete, want 2", n)
	}
	p.disk.ends <- nil
	if wcs := p.a.wait(t, 2); wcs[0].WRID != 9 || wcs[1].WRID != 10 {
		t.Errorf("completions %+v", wcs)
	}
}

// TestFlushFails: the error of a sync is that of the FLUSH.
func TestFlushFails(t *testing.T) {
	p := newFlushPair(t, false)
	p.disk.ends <- errors.New("no disk")
	p.post(t)
	var wcs [1]roce.Completion
	if _, err := p.a.cq.Wait(t.Context(), wcs[:]); err != nil {
		t.Fatal(err)
	}
	if wcs[0].Status != roce.StatusRemOpErr {
		t.Errorf("the FLUSH ended with %s", wcs[0].Status)
	}
}

// TestFlushKeepsItsMemory: whoever lets go of memory, or of the device, waits until nobody
// makes it persistent any more; whoever lets go of the queue pair does not.
func TestFlushKeepsItsMemory(t *testing.T) {
	for name, free := range map[string]func(*flushPair) error{
		"deregister": func(p *flushPair) error { return p.mr.Deregister() },
		"re-register": func(p *flushPair) error {
			return p.mr.Rereg(mem.ChangeTranslation|mem.ChangeAccess, make([]byte, 8), nil, 0)
		},
		"close": func(p *flushPair) error { return p.devs[1].Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newFlushPair(t, false)
			p.post(t)
			p.b.qp.Close()
			freed := make(chan error, 1)
			go func() {
				err := free(p)
				p.disk.freed.Store(true)
				freed <- err
			}()
			if name != "close" {
				exchange(t, p.c, p.d, 64)
			}
			select {
			case err := <-freed:
				t.Errorf("it did not wait: %v", err)
			default:
			}
			p.disk.ends <- nil
			if err := <-freed; err != nil {
				t.Error(err)
			}
			if p.disk.late.Load() {
				t.Error("memory was given back while it was made persistent")
			}
		})
	}
}
