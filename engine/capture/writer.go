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

// To wake the goroutine costs more than a packet does, so it looks by itself, and is woken
// when there is much.
const (
	lookEvery = 10 * time.Millisecond
	wakeSize  = 256 << 10 // bytes
)

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
	config   Config
	patience time.Duration // of Close
	ended    chan struct{} // closed when the goroutine is

	wake chan struct{} // room for one: filling has much, or closed is set

	mu      sync.Mutex
	filling []byte // whole blocks
	other   []byte // being written, or empty
	closed  bool
	stats   Statistics
	missing uint64 // of those dropped, since the last that was added
	err     error  // of out
	frame   Packet // the one under way, of Frame
	phrases [phraseCount]phrase

	// The time of a packet is that since the goroutine looked last, for which one clock is read
	// and not two.
	looked time.Time
	wall   int64 // then, in nanoseconds since 1970
	// The clock costs a third of what a packet does, and packets of one burst are handed to us, or
	// by us to the kernel, at once: it is read for the first of them that is wanted.
	burst int64 // when that was, 0 for not yet
}

// A Config says what is captured.
type Config struct {
	Interface string // its name
	// Buffer is how many bytes wait in memory for a slow reader: 0 for DefaultBuffer, 256 KiB
	// at least.
	Buffer int
	// Snap is how many bytes are kept of each frame, 0 for all.
	Snap int
	// Filter says which packets are wanted, nil for all. It is called under the lock of the
	// Writer, so by one goroutine at a time, and must not wait.
	Filter Filter
}

// A Filter says which packets are wanted.
type Filter interface {
	// Match reports whether a packet is. It keeps nothing of it.
	Match(p *Packet) bool
}

// NewWriter begins a capture of one Ethernet interface. At most so many bytes wait in memory:
// DefaultBuffer is a good number, and there are 256 KiB at least. The caller closes the
// Writer, and w after it.
func NewWriter(w io.Writer, iface string, buffer int) *Writer {
	return New(w, Config{Interface: iface, Buffer: max(buffer, minBuffer)})
}

// New begins a capture. The caller closes the Writer, and w after it.
func New(w io.Writer, config Config) *Writer {
	if config.Buffer == 0 {
		config.Buffer = DefaultBuffer
	}
	half := max(config.Buffer, minBuffer) / 2
	c := &Writer{
		out: w, config: config, patience: closeTimeout, ended: make(chan struct{}),
		filling: make([]byte, 0, half), other: make([]byte, 0, half),
		wake: make(chan struct{}, 1),
	}
	c.filling = appendHeader(c.filling, config.Interface, config.Snap)
	c.look()
	go c.run()
	return c
}

// Frame adds a frame, given in one or two pieces, of which no more is known, or drops it. It
// never waits for the writer and allocates nothing. After Close it does nothing.
func (c *Writer) Frame(at time.Time, dir Direction, head, tail []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frame = Packet{At: at.UnixNano(), Dir: dir, Head: head, Tail: tail}
	c.add(&c.frame)
}

// Packet adds a packet that the filter wants, or drops it. It never waits for the writer and
// allocates nothing. After Close it does nothing. It implements engine.PacketTap.
func (c *Writer) Packet(p *Packet) {
	c.mu.Lock()
	c.add(p)
	c.mu.Unlock() // not deferred, which takes some nanoseconds
}

// add is Packet with the lock held.
func (c *Writer) add(p *Packet) {
	if c.closed {
		return
	}
	c.stats.Received++
	if !p.Together {
		c.burst = 0
	}
	if c.config.Filter != nil && !c.config.Filter.Match(p) {
		return
	}
	c.stats.Accepted++
	at := p.At
	if at == 0 {
		if c.burst == 0 {
			c.burst = c.wall + int64(time.Since(c.looked))
		}
		at = c.burst
	}
	c.stats.At = at
	before := len(c.filling)
	if c.err != nil || before+room(p, c.config.Snap)+statisticsLen > cap(c.filling) {
		c.stats.Dropped++
		c.missing++
		return
	}
	c.filling = appendPacket(c.filling, p, at, c.missing, c.config.Snap, c.phraseOf(p))
	c.missing = 0
	if much := min(wakeSize, cap(c.filling)/2); before < much && len(c.filling) >= much {
		c.rouse()
	}
}

// Frames returns how many frames were added and are not lost: they are written, or wait for that.
func (c *Writer) Frames() uint64 {
	s := c.Statistics()
	return s.Accepted - s.Dropped
}

// Dropped returns how many frames are missing: the buffer was full, or writing had failed.
func (c *Writer) Dropped() uint64 { return c.Statistics().Dropped }

// Statistics returns what was counted by now.
func (c *Writer) Statistics() Statistics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Ended returns a channel that is closed when nothing more is written: after Close, or when
// writing has failed.
func (c *Writer) Ended() <-chan struct{} { return c.ended }

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
		c.filling = c.stats.append(c.filling)
		c.rouse()
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

// rouse wakes the goroutine.
func (c *Writer) rouse() {
	select {
	case c.wake <- struct{}{}:
	default: // it is about to look
	}
}

// run writes until all is written after Close, or until writing fails.
func (c *Writer) run() {
	defer close(c.ended)
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		b, closed := c.take()
		if len(b) > 0 {
			if n, err := c.out.Write(b); err != nil {
				c.fail(err, CountPackets(b)-CountPackets(b[:n]))
				return
			}
			continue
		}
		if closed {
			return
		}
		select {
		case <-c.wake:
		case <-ticks.C:
		}
	}
}

// fail notes that writing has failed, with so many packets of what was under way that were not
// written. Nor will be those that wait.
func (c *Writer) fail(err error, lost uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	c.stats.Dropped += lost + CountPackets(c.filling)
	c.filling = c.filling[:0]
}

// take returns what there is to write, and whether there will be no more. What it returned
// before is written.
func (c *Writer) take() (b []byte, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filling, c.other = c.other[:0], c.filling
	c.look()
	return c.other, c.closed
}

// look reads the time.
func (c *Writer) look() {
	c.looked = time.Now()
	c.wall = c.looked.UnixNano()
}
