package capture

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// DefaultBuffer is how many bytes wait for a slow reader, if nobody says otherwise.
const DefaultBuffer = 16 << 20

// minBuffer has room for the headers and two frames of the largest MTU.
const minBuffer = 1 << 18

// closeTimeout is how long Close waits for somebody to take what was captured.
const closeTimeout = 10 * time.Second

// Direction says which way a frame went, as in epb_flags.
type Direction uint32

// The directions.
const (
	Inbound  Direction = 1
	Outbound Direction = 2
)

// A Writer writes a capture. What is added waits in memory for a goroutine of the Writer,
// which writes it; frames for which there is no room are dropped and counted. It is safe
// for concurrent use, and Close ends the goroutine.
//
// There are two buffers: one is filled while the other is written.
type Writer struct {
	out      io.Writer
	patience time.Duration // of Close
	ended    chan struct{} // closed when the goroutine is

	mu      sync.Mutex
	changed sync.Cond // filling has something, or closed is set
	filling []byte    // whole blocks
	other   []byte    // being written, or empty
	closed  bool
	last    int64  // the time of the last frame
	frames  uint64 // that were added
	dropped uint64 // that were not
	missing uint64 // those of them since the last that was added
	err     error  // of out
}

// NewWriter begins a capture of one Ethernet interface. At most so many bytes wait in memory:
// DefaultBuffer is a good number, and there are 256 KiB at least. The caller closes the
// Writer, and w after it.
func NewWriter(w io.Writer, iface string, buffer int) *Writer {
	half := max(buffer, minBuffer) / 2
	c := &Writer{
		out: w, patience: closeTimeout, ended: make(chan struct{}),
		filling: make([]byte, 0, half), other: make([]byte, 0, half),
	}
	c.changed.L = &c.mu
	c.filling = appendHeader(c.filling, iface)
	go c.run()
	return c
}

// Frame adds a frame, given in one or two pieces, or drops it. It never waits for the writer
// and allocates nothing. After Close it does nothing.
func (c *Writer) Frame(at time.Time, dir Direction, head, tail []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.last = at.UnixNano()
	f := frame{at: c.last, dir: dir, missing: c.missing, head: head, tail: tail}
	if c.err != nil || len(c.filling)+f.size()+statisticsLen > cap(c.filling) {
		c.dropped++
		c.missing++
		return
	}
	c.filling = f.append(c.filling)
	c.frames++
	c.missing = 0
	c.changed.Signal()
}

// Frames returns how many frames were added.
func (c *Writer) Frames() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames
}

// Dropped returns how many frames are missing: the buffer was full, or writing had failed.
func (c *Writer) Dropped() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

// Close writes the rest and how many frames are missing, and ends the goroutine. It returns
// the first error of writing, after which nothing more was written. It is idempotent, and
// does not close what is written to.
//
// It waits 10 s at most. A pipe or another file with deadlines is given up then, in the
// middle of a block; the error is os.ErrDeadlineExceeded. A Write that has no deadline cannot
// be ended: the goroutine is left in it.
func (c *Writer) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.filling = appendStatistics(c.filling, c.last, c.frames+c.dropped, c.dropped)
		c.changed.Signal()
	}
	c.mu.Unlock()
	if !c.await() {
		return fmt.Errorf("capture: closed before all was written: %w", os.ErrDeadlineExceeded)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return fmt.Errorf("capture: %w", c.err)
	}
	return nil
}

// await waits for the end of the goroutine and reports whether it came.
func (c *Writer) await() bool {
	if d, ok := c.out.(interface{ SetWriteDeadline(time.Time) error }); ok &&
		d.SetWriteDeadline(time.Now().Add(c.patience)) == nil {
		<-c.ended
		// It is the caller's again, who may write to it.
		_ = d.SetWriteDeadline(time.Time{})
		return true
	}
	timer := time.NewTimer(c.patience)
	defer timer.Stop()
	select {
	case <-c.ended:
		return true
	case <-timer.C:
		return false
	}
}

// run writes until all is written after Close, or until writing fails.
func (c *Writer) run() {
	defer close(c.ended)
	for b := c.next(); len(b) > 0; b = c.next() {
		if _, err := c.out.Write(b); err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
	}
}

// next waits for something to write and returns it: nothing when the end has come. What it
// returned before is written.
func (c *Writer) next() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.filling) == 0 && !c.closed {
		c.changed.Wait()
	}
	c.filling, c.other = c.other[:0], c.filling
	return c.other
}
