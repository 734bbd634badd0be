package engine

import (
	"testing"

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
