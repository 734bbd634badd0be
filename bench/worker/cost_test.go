package worker

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestCostSub(t *testing.T) {
	end := Cost{
		UserTime: 10, SystemTime: 20, Cycles: &Cycles{300, 400}, Heap: &Heap{7, 3},
	}
	begin := Cost{UserTime: 1, SystemTime: 2, Cycles: &Cycles{30, 40}, Heap: &Heap{5, 3}}
	want := Cost{UserTime: 9, SystemTime: 18, Cycles: &Cycles{270, 360}, Heap: &Heap{2, 0}}
	if diff := cmp.Diff(want, end.sub(begin)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := want.CPUTime(); got != 27 {
		t.Errorf("CPUTime() = %v, want 27ns", got)
	}
	none := Cost{NoCycles: "none here"}
	if got := none.sub(Cost{}); got.Cycles != nil || got.Heap != nil || got.NoCycles == "" {
		t.Errorf("%+v out of nothing", got)
	}
}

// sinks keep what the tests do from being optimised away.
var (
	sinkBytes []byte
	sinkCount int
)

// TestMeterCountsWork uses the clock of the scheduler in place of cycles, which
// not every machine counts.
func TestMeterCountsWork(t *testing.T) {
	m := newMeter(event{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK})
	defer m.close()
	if m.cost() != nil {
		t.Error("a cost before the first reading")
	}
	m.read()
	const objects = 1000
	for range objects {
		sinkBytes = make([]byte, 100)
	}
	runtime.GC()
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		sinkCount++
	}
	m.read()
	c := m.cost()
	if c.Heap.Mallocs < objects || c.Heap.Mallocs > 2*objects || c.Heap.Collections < 1 {
		t.Errorf("heap %+v, want about %d objects and a collection", c.Heap, objects)
	}
	if c.CPUTime() <= 0 {
		t.Errorf("%v on the processor", c.CPUTime())
	}
	if m.noCycles != "" {
		if os.Getenv("XROCE_ROOT_TESTS") == "1" {
			t.Fatalf("XROCE_ROOT_TESTS is set, but %s", m.noCycles)
		}
		t.Skipf("SKIPPED, no perf event was read: %s", m.noCycles)
	}
	if c.Cycles.User == 0 || c.Cycles.Kernel == 0 {
		t.Errorf("counted %+v", c.Cycles)
	}
}

func TestMeterReadsWithoutAllocating(t *testing.T) {
	// What other goroutines of the process allocate meanwhile is counted, too, and
	// the race detector's: the best of some tries says what the reading itself takes.
	var heap *Heap
	for range 20 {
		m := newMeter(cpuCycles)
		m.read()
		m.read()
		heap = m.cost().Heap
		m.close()
		if heap.Mallocs <= 5 && heap.Collections == 0 {
			return
		}
	}
	t.Errorf("two readings in a row differ by %+v", heap)
}

func TestMeterSaysWhyThereAreNoCycles(t *testing.T) {
	m := newMeter(event{unix.PERF_TYPE_HARDWARE, 1 << 30}) // no such counter
	defer m.close()
	m.read()
	m.read()
	c := m.cost()
	if c.Cycles != nil || !strings.HasPrefix(c.NoCycles, "not supported: perf_event_open") {
		t.Errorf("cycles %+v, reason %q", c.Cycles, c.NoCycles)
	}
}

func TestWindowHasACost(t *testing.T) {
	w := NewWindow(Options{Warmup: time.Second, Window: time.Second})
	w.Tick(0, 0)
	w.Tick(time.Second, 0)
	if w.Cost() != nil {
		t.Error("a cost before the window closed")
	}
	w.Tick(2*time.Second, 0)
	w.Tick(3*time.Second, 0)
	if c := w.Cost(); c == nil || c.Heap == nil || (c.Cycles == nil) == (c.NoCycles == "") {
		t.Errorf("cost %+v", c)
	}
}
