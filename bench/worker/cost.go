package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Cost is what a worker used within its window.
type Cost struct {
	UserTime   int64   `json:"user_ns"`             // of the process, nanoseconds
	SystemTime int64   `json:"system_ns"`           // of the process, without kernel threads
	Cycles     *Cycles `json:"cycles,omitempty"`    // nil where the machine counts none
	NoCycles   string  `json:"no_cycles,omitempty"` // why there are none
	Heap       *Heap   `json:"heap,omitempty"`      // nil for workers that are not in Go
}

// Cycles are processor cycles (PERF_COUNT_HW_CPU_CYCLES). The kernel's are those
// of the worker's processor and not of its process: the thread that receives for
// it (threaded NAPI) is not in the process.
type Cycles struct {
	User   uint64 `json:"user"`   // of the process, in user mode
	Kernel uint64 `json:"kernel"` // of the worker's processor, in kernel mode
}

// A Heap is what Go's runtime did.
type Heap struct {
	Mallocs     uint64 `json:"mallocs"`     // objects allocated
	Collections uint64 `json:"collections"` // garbage collections that ended
}

// sub is the cost since an earlier reading.
func (c Cost) sub(since Cost) Cost {
	c.UserTime -= since.UserTime
	c.SystemTime -= since.SystemTime
	if c.Cycles != nil && since.Cycles != nil {
		c.Cycles = &Cycles{c.Cycles.User - since.Cycles.User, c.Cycles.Kernel - since.Cycles.Kernel}
	}
	if c.Heap != nil && since.Heap != nil {
		c.Heap = &Heap{
			c.Heap.Mallocs - since.Heap.Mallocs, c.Heap.Collections - since.Heap.Collections,
		}
	}
	return c
}

// A meter reads what this process has used so far. Reading stops the world for
// some microseconds and allocates nothing that it counts.
type meter struct {
	user, kernel []int // descriptors of perf events
	noCycles     string
	mem          runtime.MemStats
	readings     [2]struct {
		cost   Cost
		cycles Cycles
		heap   Heap
	}
	n int // readings taken
}

// event is what a meter counts.
type event struct {
	kind   uint32 // PERF_TYPE_*
	config uint64
}

// cpuCycles are the cycles of the processor, however fast its clock is.
var cpuCycles = event{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES}

// newMeter starts to count. What setting up left to the garbage collector is
// collected now, so that a collection later is the work's own.
func newMeter(e event) *meter {
	m := &meter{}
	if err := m.open(e); err != nil {
		m.close()
		m.noCycles = "not supported: " + err.Error()
	}
	runtime.GC()
	return m
}

// open counts in user mode for every thread there is, and for those they start,
// and in kernel mode for every processor that the process may use.
func (m *meter) open(e event) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		fd, err := e.open(unix.PerfBitExcludeKernel|unix.PerfBitInherit, tid, -1)
		if errors.Is(err, unix.ESRCH) {
			continue // the thread is gone
		}
		if err != nil {
			return err
		}
		m.user = append(m.user, fd)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	for cpu := 0; len(m.kernel) < set.Count(); cpu++ {
		if !set.IsSet(cpu) {
			continue
		}
		fd, err := e.open(unix.PerfBitExcludeUser, -1, cpu)
		if err != nil {
			return err
		}
		m.kernel = append(m.kernel, fd)
	}
	return nil
}

// open makes one perf event.
func (e event) open(bits uint64, pid, cpu int) (fd int, err error) {
	fd, err = unix.PerfEventOpen(&unix.PerfEventAttr{
		Type: e.kind, Size: unix.PERF_ATTR_SIZE_VER8, Config: e.config,
		Bits: bits | unix.PerfBitExcludeHv,
	}, pid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("perf_event_open: %w", err)
	}
	return fd, nil
}

// read takes the next of two readings.
func (m *meter) read() {
	r := &m.readings[m.n]
	m.n++
	var usage unix.Rusage
	// It fails for bad arguments only.
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage)
	r.cost.UserTime, r.cost.SystemTime = usage.Utime.Nano(), usage.Stime.Nano()
	r.cycles = Cycles{User: sum(m.user), Kernel: sum(m.kernel)}
	// Exact, where package metrics leaves out what threads hold in their caches.
	runtime.ReadMemStats(&m.mem)
	r.heap = Heap{Mallocs: m.mem.Mallocs, Collections: uint64(m.mem.NumGC)}
}

// sum adds perf events up. A descriptor that cannot be read counts as 0.
func sum(fds []int) (total uint64) {
	var b [8]byte
	for _, fd := range fds {
		if n, err := unix.Read(fd, b[:]); err == nil && n == len(b) {
			total += binary.NativeEndian.Uint64(b[:])
		}
	}
	return total
}

// cost is what was used between the two readings, nil before both are taken.
func (m *meter) cost() *Cost {
	if m.n < len(m.readings) {
		return nil
	}
	for i := range m.readings {
		r := &m.readings[i]
		r.cost.NoCycles, r.cost.Heap = m.noCycles, &r.heap
		if m.noCycles == "" {
			r.cost.Cycles = &r.cycles
		}
	}
	c := m.readings[1].cost.sub(m.readings[0].cost)
	return &c
}

// close gives the perf events back.
func (m *meter) close() {
	for _, fd := range append(m.user, m.kernel...) {
		_ = unix.Close(fd)
	}
	m.user, m.kernel = nil, nil
}

// CPUTime is the time on a processor, of the process.
func (c *Cost) CPUTime() time.Duration { return time.Duration(c.UserTime + c.SystemTime) }
