package softroce

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
)

// An End is one end of a cable.
type End int

// The two ends: A is what the first argument of NewCable is, B the second.
const (
	A End = iota
	B
)

// maxFrame is more than any frame has, in bytes.
const maxFrame = 1 << 16

// A Watcher sees the frames on a cable, one after the other. Frame is valid during
// the call only. Lost frames are seen, too, as such; of the others the watcher
// may have the cable lose this one.
type Watcher func(from End, frame []byte, lost bool) (lose bool)

// A Cable forwards Ethernet frames between two files that read and write one
// frame at a call: the tap of a Site, the port of a VM. It loses nothing unless
// told to. Safe for concurrent use.
type Cable struct {
	ends    [2]*os.File
	running sync.WaitGroup

	mu      sync.Mutex // of what follows
	random  *rand.PCG
	below   uint64 // a frame whose draw of 32 bits is below is lost
	watcher Watcher

	lost atomic.Uint64
}

// NewCable connects two files until Close. They stay the caller's, but end when
// the cable does.
func NewCable(a, b *os.File) *Cable {
	c := &Cable{ends: [2]*os.File{a, b}, random: rand.NewPCG(1, 0)}
	c.running.Go(func() { c.forward(A) })
	c.running.Go(func() { c.forward(B) })
	return c
}

// Lose makes the cable lose ppm frames in a million from now on, each
// independent of the others as a seed decides. Which frames these are depends on
// their order, so a seed repeats the rate and not the run.
func (c *Cable) Lose(ppm int, seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.random = rand.NewPCG(seed, 0)
	c.below = uint64(ppm) << 32 / 1e6
}

// Lost returns how many frames were lost.
func (c *Cable) Lost() uint64 { return c.lost.Load() }

// Watch shows every frame from now on to w, nil for nobody.
func (c *Cable) Watch(w Watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watcher = w
}

// forward moves the frames that come from an end until that is closed.
func (c *Cable) forward(from End) {
	buf := make([]byte, maxFrame)
	in, out := c.ends[from], c.ends[B-from]
	for {
		n, err := in.Read(buf)
		if errors.Is(err, os.ErrClosed) || n == 0 {
			return
		}
		if c.pass(from, buf[:n]) {
			continue
		}
		// What cannot be written is lost as on any cable: an interface that is
		// down, a VM that is gone.
		_, _ = out.Write(buf[:n])
	}
}

// pass shows a frame to the watcher and reports whether it is lost.
func (c *Cable) pass(from End, frame []byte) (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost = c.below > 0 && c.random.Uint64()>>32 < c.below
	if c.watcher != nil && c.watcher(from, frame, lost) {
		lost = true
	}
	if lost {
		c.lost.Add(1)
	}
	return lost
}

// Close ends the cable and closes both files.
func (c *Cable) Close() error {
	err := errors.Join(closed(c.ends[A].Close()), closed(c.ends[B].Close()))
	c.running.Wait()
	return err
}

// closed is err unless it says that a file was closed already.
func closed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
