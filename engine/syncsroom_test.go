package engine

import (
	"testing"

	"xroce/roce/mem"
)

// TestSyncsAreBounded: while all workers are busy 256 FLUSHes wait; one that is given up
// makes room, and at the end there is none.
func TestSyncsAreBounded(t *testing.T) {
	var s syncs
	s.init(NewSystemClock())
	s.running = make([]syncJob, syncWorkers)
	var last *mem.SyncJob
	for range maxSyncs {
		last = new(mem.SyncJob)
		if !s.add(syncJob{job: last}) {
			t.Fatal("no room")
		}
	}
	if s.add(syncJob{job: new(mem.SyncJob)}) {
		t.Error("room for more than there may be")
	}
	s.cancel(last)
	if !s.add(syncJob{job: new(mem.SyncJob)}) || s.add(syncJob{job: new(mem.SyncJob)}) {
		t.Error("the place of one that was given up is not one place")
	}
	s.close()
	if s.add(syncJob{job: new(mem.SyncJob)}) {
		t.Error("room after the end")
	}
}
