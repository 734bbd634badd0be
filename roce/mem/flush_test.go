package mem

import (
	"errors"
	"runtime"
	"sync"
	"testing"
)

// flush carries a FLUSH out to its end.
func flush(k *Keys, a Accessor, key uint32, addr uint64, n int, whole, persistent bool) Fault {
	job, f := k.Flush(a, key, addr, n, whole, persistent)
	if f == OK && !job.None() && job.Run() != nil {
		return FaultSync
	}
	return f
}

// TestFlushSyncs what was asked for, and only when it was.
func TestFlushSyncs(t *testing.T) {
	const base, size = 0x1000, 64
	type span struct{ off, n int }
	for _, tt := range []struct {
		name              string
		addr              uint64
		n                 int
		whole, persistent bool
		want              []span
	}{
		{"global", base, size, false, false, nil},
		{"global whole", 0, 0, true, false, nil},
		{"range", base + 8, 16, false, true, []span{{8, 16}}},
		{"nothing", base, 0, false, true, nil},
		{"nothing at the end", base + size, 0, false, true, nil},
		{"whole ignores the range", 1, -1, true, true, []span{{0, size}}},
		{"outside", base + 1, size, false, true, nil},
	} {
		var got []span
		broken := error(nil)
		sync := func(off, n int) error { got = append(got, span{off, n}); return broken }
		k, d := newKeys(1), new(Domain)
		m := Memory{Bytes: make([]byte, size), Addr: base, Sync: sync}
		r, err := k.RegisterMemory(d, m, everything)
		if err != nil {
			t.Fatal(err)
		}
		f := flush(k, d.Local(), r.RKey(), tt.addr, tt.n, tt.whole, tt.persistent)
		if (f == OK) != (tt.name != "outside") || len(got) != len(tt.want) ||
			len(got) > 0 && got[0] != tt.want[0] {
			t.Errorf("%s: synced %v, want %v, %s", tt.name, got, tt.want, f)
		}
		broken = errors.New("disk is gone")
		f = flush(k, d.Local(), r.RKey(), tt.addr, tt.n, tt.whole, tt.persistent)
		if (f == FaultSync) != (len(tt.want) > 0) {
			t.Errorf("%s: %s after sync failed", tt.name, f)
		}
	}
}

// TestFlushRights: memory that cannot be synced has no persistence to grant.
func TestFlushRights(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 8), FlushGlobal)
	if err != nil {
		t.Fatal(err)
	}
	for _, whole := range []bool{false, true} {
		if f := flush(k, d.Local(), r.RKey(), r.Addr(), 8, whole, false); f != OK {
			t.Errorf("global, whole %t: %s", whole, f)
		}
		if f := flush(k, d.Local(), r.RKey(), r.Addr(), 8, whole, true); f != FaultRights {
			t.Errorf("persistent, whole %t: %s", whole, f)
		}
	}
}

// TestFlushOrders what was written before it: who sees the fence, and has nothing
// else in common with the writer, reads the data without a race.
func TestFlushOrders(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	b := make([]byte, 8)
	r, err := k.Register(d, b, volatile)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		f := k.Store(d.Local(), r.RKey(), r.Addr(), []byte("flushed!"), RemoteWrite)
		if g := flush(k, d.Local(), r.RKey(), r.Addr(), 8, false, false); f != OK || g != OK {
			t.Errorf("store: %s, flush: %s", f, g)
		}
	})
	for k.fence.Load() == 0 {
		runtime.Gosched()
	}
	if string(b) != "flushed!" {
		t.Errorf("memory is %q", b)
	}
	wg.Wait()
}

// TestFlushWhileDeregistered: a job names its region, also when the key is taken out of use
// at the same time: who lets go of the memory has to find it.
func TestFlushWhileDeregistered(t *testing.T) {
	const tries = 5000
	var d Domain
	k := newKeys(1)
	m := Memory{Bytes: make([]byte, 8), Sync: func(int, int) error { return nil }}
	for range tries {
		r, err := k.RegisterMemory(&d, m, FlushPersistent)
		if err != nil {
			t.Fatal(err)
		}
		key, began := r.RKey(), make(chan struct{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			close(began)
			if err := k.Deregister(r); err != nil {
				t.Error(err)
			}
		}()
		<-began
		for f := OK; f == OK; {
			var job SyncJob
			if job, f = k.Flush(d.Local(), key, 0, 0, true, true); f == OK && !job.Of(r) {
				t.Error("the job is about no region")
			}
		}
		<-over
		if t.Failed() {
			return
		}
	}
}
