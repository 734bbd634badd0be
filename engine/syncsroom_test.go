package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"xroce/roce/mem"
)

// TestSyncsAreBounded: while all workers are busy 256 FLUSHes wait; one that is given up
// makes room, and at the end there is none.
func TestSyncsAreBounded(t *testing.T) {
	o := Options{Clock: NewSystemClock()}
	o.setDefaults()
	s := &newDevice(nullHost{}, nil, o).syncs
	s.running = make([]syncJob, syncWorkers)
	var last *mem.SyncJob
	for range maxSyncs {
		last = new(mem.SyncJob)
		if !s.StartSync(last, 17) {
			t.Fatal("no room")
		}
	}
	if s.StartSync(new(mem.SyncJob), 17) {
		t.Error("room for more than there may be")
	}
	s.CancelSync(last)
	if !s.StartSync(new(mem.SyncJob), 17) || s.StartSync(new(mem.SyncJob), 17) {
		t.Error("the place of one that was given up is not one place")
	}
	s.close()
	if s.StartSync(new(mem.SyncJob), 17) {
		t.Error("room after the end")
	}
}

// TestSyncsThatCameLater: who re-registers a region waits for the FLUSHes that there are, not
// for those that peers begin meanwhile.
func TestSyncsThatCameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Clock: NewSystemClock()}
		o.setDefaults()
		d := newDevice(nullHost{}, nil, o)
		const access = mem.LocalWrite | mem.FlushPersistent
		ends := [2]chan error{make(chan error), make(chan error)}
		m := mem.MemoryOf(make([]byte, len(ends)), access)
		m.Sync = func(off, _ int) error { return <-ends[off] }
		pd := d.AllocPD()
		region, err := d.keys.RegisterMemory(&pd.core, m, access)
		if err != nil {
			t.Fatal(err)
		}
		flush := func(off uint64) {
			t.Helper()
			job, f := d.keys.Flush(pd.core.Local(), region.RKey(), m.Addr+off, 1, false, true)
			if f != mem.OK || !d.syncs.StartSync(&job, 17) {
				t.Fatalf("a FLUSH was refused: %v", f)
			}
		}
		flush(0)
		var over atomic.Bool
		go func() {
			d.syncs.wait(region)
			over.Store(true)
		}()
		synctest.Wait()
		flush(1)
		if over.Load() {
			t.Error("the first was not waited for")
		}
		ends[0] <- nil
		synctest.Wait()
		if !over.Load() {
			t.Error("one that came later was waited for")
		}
		ends[1] <- nil
	})
}
