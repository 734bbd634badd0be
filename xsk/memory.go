package xsk

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Unlimited is a limit of MemoryLimits that there is none of.
const Unlimited = math.MaxInt64

// MemoryLimits is how much more memory a process may have. The kernel refuses to lock
// beyond the one; whoever touches memory beyond the other is killed.
type MemoryLimits struct {
	Locked  int64  // bytes that may be locked (RLIMIT_MEMLOCK)
	Charged int64  // bytes that its memory cgroups have left, with what can be reclaimed
	Cgroup  string // the cgroup that has least left, "" where Charged is Unlimited
}

// ErrHugePages says that fewer huge pages are free than were asked for.
var ErrHugePages = errors.New("too few huge pages")

// hugePage is the size of a huge page, which UMEM lengths are rounded up to with those.
const hugePage = 2 << 20

// hugePagesHint says what helps when huge pages were asked for.
func hugePagesHint(size int) string {
	n := (size + hugePage - 1) / hugePage
	return fmt.Sprintf("%d huge pages of 2 MiB are needed, and so many are not free "+
		"(HugePages_Free in /proc/meminfo): sysctl vm.nr_hugepages=%d, or more where others "+
		"have some", n, n)
}

// The fewest frames that a socket makes do with, when the configuration does not say how many.
const (
	minRxFrames = DefaultRxFrames / 16
	minTxFrames = DefaultTxFrames / 16
	// Where Config.Memory says how much there is, fewer may be what is wanted.
	minBoundRxFrames = 128
	minBoundTxFrames = 64
)

// frames is how many bytes of frames each of some sockets may have within the limits, and the
// error of more. Of what a cgroup has left half is kept from those who take what there is: rings,
// queue pairs and the program need memory, too. Who has counted may take all of it.
func (m MemoryLimits) frames(sockets int, counted bool) (most int64, why error) {
	charged, part := m.Charged/2, "half of the"
	if counted {
		charged, part = m.Charged, "the"
	}
	by := ""
	if sockets > 1 {
		by = fmt.Sprintf(", by %d sockets", sockets)
	}
	if m.Locked <= charged {
		return m.Locked / int64(sockets), limitError{unix.ENOBUFS, fmt.Sprintf(
			"%d KiB may be locked (ulimit -l, or CAP_IPC_LOCK)%s", m.Locked>>10, by)}
	}
	return charged / int64(sockets), limitError{unix.ENOMEM, fmt.Sprintf(
		"%s %d KiB that the memory cgroup %s has left may be taken%s", part, m.Charged>>10,
		m.Cgroup, by)}
}

// Spare is the error of being charged for so many bytes that nobody locks, nil while half of what
// the cgroup has left is kept for the rest of the program.
func (m MemoryLimits) Spare(bytes int64) error {
	m.Locked = Unlimited
	if most, why := m.frames(1, false); bytes > most {
		return why
	}
	return nil
}

// A limitError says what limits the frames. It is the errno that the kernel has for that.
type limitError struct {
	errno unix.Errno
	text  string
}

// Error implements error.
func (e limitError) Error() string { return e.text }

// Unwrap returns the errno.
func (e limitError) Unwrap() error { return e.errno }

// fit halves the frames that the configuration does not say the number of until all are within the
// limits, and returns what limited them, "" for nothing. The error tells how much is missing.
func (c *Config) fit(mtu int, limits MemoryLimits) (limited string, err error) {
	if err := c.bound(mtu); err != nil {
		return "", err
	}
	if c.HugePages { // they are reserved, and no memory cgroup is charged for them
		limits.Charged = Unlimited
	}
	most, why := limits.frames(c.Sockets, !c.fitRx && !c.fitTx)
	for {
		lay, err := c.layout(mtu)
		if err != nil || int64(lay.umemSize) <= most {
			return limited, err
		}
		if limited = why.Error(); !c.halve() {
			return "", fmt.Errorf("the frames of a socket, %d to receive on each of %d queues and "+
				"%d to send, need %d KiB at least, and %w", c.RxFrames, 1+c.others, c.TxFrames,
				lay.umemSize>>10, why)
		}
	}
}

// bound halves the frames until they are within Memory, with their rings.
func (c *Config) bound(mtu int) error {
	for c.Memory > 0 {
		lay, err := c.layout(mtu)
		if err != nil {
			return err
		}
		need := int64(lay.umemSize) + c.ringBytes(lay)
		if need <= c.Memory {
			break
		}
		if !c.halve() {
			return fmt.Errorf("frames and rings of %d queues need %d KiB at least, "+
				"and may have %d KiB", 1+c.others, (need+1023)>>10, c.Memory>>10)
		}
	}
	return nil
}

// halve takes half of the frames away that the configuration does not say the number of, unless
// too few would be left.
func (c *Config) halve() bool {
	rx, tx := minRxFrames, minTxFrames
	if c.Memory > 0 {
		rx, tx = minBoundRxFrames, minBoundTxFrames
	}
	if !c.fitRx && !c.fitTx || c.fitRx && c.RxFrames/2 < rx || c.fitTx && c.TxFrames/2 < tx {
		return false
	}
	if c.fitRx {
		c.RxFrames /= 2
		c.FillTarget = min(c.FillTarget, c.RxFrames)
	}
	if c.fitTx {
		c.TxFrames /= 2
	}
	return true
}
