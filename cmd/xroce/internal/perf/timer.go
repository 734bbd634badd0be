package perf

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// A clock counts nanoseconds from its making.
type clock struct{ zero time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() int64 { return int64(time.Since(c.zero)) }

// A phase is a part of a run by duration.
type phase int

// The phases: nothing is counted before and after the sample.
const (
	phaseIdle phase = iota // not begun
	phaseWarm
	phaseSample
	phaseTail
	phaseOver
)

// A timer divides a run by duration into phases. The zero timer never ends: a run
// by iterations has one.
type timer struct {
	margin, window int64
	cpu            bool // look at the load of the CPUs, too

	state    phase
	begun    int64 // of the phase
	from, to int64 // when the sample began and ended
	looked   int64 // the last time that was part of it
	load     [2]cpuTimes
}

func newTimer(c *Config) timer {
	return timer{
		margin: int64(c.Margin), window: int64(c.window()), cpu: c.CPUUtil,
	}
}

// start begins the first phase, once.
func (t *timer) start(now int64) {
	if t.window > 0 && t.state == phaseIdle {
		t.state, t.begun = phaseWarm, now
		t.tick(now)
	}
}

// tick moves on to the phase of the time.
func (t *timer) tick(now int64) {
	if t.state == phaseWarm && now-t.begun >= t.margin {
		t.state, t.begun, t.from = phaseSample, now, now
		if t.cpu {
			t.load[0] = readCPUTimes()
		}
	}
	if t.state == phaseSample && now-t.begun < t.window {
		t.looked = now
	}
	if t.state == phaseSample && now-t.begun >= t.window {
		t.state, t.begun, t.to = phaseTail, now, now
		if t.cpu {
			t.load[1] = readCPUTimes()
		}
	}
	if t.state == phaseTail && now-t.begun >= t.margin {
		t.state = phaseOver
	}
}

// counts reports whether what happens now is part of the result.
func (t *timer) counts() bool { return t.state == phaseSample }

// over reports whether the time is up.
func (t *timer) over() bool { return t.state == phaseOver }

// cpuTimes are jiffies of all CPUs together.
type cpuTimes struct{ user, idle uint64 }

// readCPUTimes reads /proc/stat (proc_stat(5)); zeros when it cannot.
func readCPUTimes() (c cpuTimes) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := strings.Cut(string(b), "\n")
	// cpu user nice system idle ...
	if f := strings.Fields(line); len(f) > 4 {
		c.user, _ = strconv.ParseUint(f[1], 10, 64)
		c.idle, _ = strconv.ParseUint(f[4], 10, 64)
	}
	return c
}

// cpuUtil is the load between two readings in percent, as the tool defines it: the
// time in user mode compared with that and idle time.
func cpuUtil(load [2]cpuTimes) float64 {
	user, idle := load[1].user-load[0].user, load[1].idle-load[0].idle
	if user+idle == 0 {
		return 0
	}
	return 100 * float64(user) / float64(user+idle)
}
