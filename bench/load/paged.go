package load

import (
	"golang.org/x/sys/unix"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/roce/mem"
)

// Modes of a target whose memory is paged: all of it there already, or none.
const (
	targetPaged = "target-paged"
	targetFresh = "target-fresh"
)

// walkBytes is how much memory that was not touched there is to write to: more than is
// written while it is measured. It is a multiple of all lengths of messages.
const walkBytes = 1 << 30

// register makes the memory of the work.
func (c *conn) register(pd *engine.PD, o worker.Options, access mem.Access) (err error) {
	n := max(o.Message, o.Memory)
	switch o.Mode {
	case targetFresh:
		n = walkBytes
	case targetPaged:
	default:
		c.mr, err = c.device.RegMR(pd, make([]byte, n), access)
		return err
	}
	// It ends with the process.
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	if o.Mode == targetPaged {
		for i := range b {
			b[i] = 1
		}
	}
	c.mr, err = c.device.RegODP(pd, b, access)
	return err
}

// rcWriteWalk is rcWrite to all of the other end's memory, one message behind the other.
func rcWriteWalk(c *conn, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	c.walk = walkBytes
	return rcWrite(c, o)
}
