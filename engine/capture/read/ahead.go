package read

import "io"

// Sizes of what is read ahead. Who looks at one part while another processor reads the next is
// woken seldom enough with parts of this length: with shorter ones waking costs what is won.
const (
	aheadPart  = 1 << 20 // bytes
	aheadParts = 4
)

// A part is a piece of a file. What was left of the one before has room in front of it.
type part struct {
	b   []byte // MaxBlock bytes of room, then what was read
	n   int    // bytes that were read
	err error  // behind them
}

// An ahead reads a file in a goroutine of its own, some parts further than it was asked for.
type ahead struct {
	parts chan part   // in their order
	free  chan []byte // the memory of parts that were looked at
	stop  chan struct{}
	ended chan struct{}
}

// newAhead starts to read, in so many parts of so many bytes.
func newAhead(in io.Reader, parts, length int) *ahead {
	a := &ahead{
		parts: make(chan part, parts), free: make(chan []byte, parts),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	for range parts {
		a.free <- make([]byte, MaxBlock+length)
	}
	go a.run(in)
	return a
}

// run reads until the end, an error or close.
func (a *ahead) run(in io.Reader) {
	defer close(a.ended)
	for {
		select {
		case b := <-a.free:
			p := part{b: b}
			p.n, p.err = readSome(in, b[MaxBlock:])
			a.parts <- p // it has room for all there are
			if p.err != nil {
				return
			}
		case <-a.stop:
			return
		}
	}
}

// close ends reading, when the call of Read that is under way returns.
func (a *ahead) close() {
	close(a.stop)
	<-a.ended
}

// readSome reads something: fewer bytes than there is room for, none only with an error.
func readSome(in io.Reader, to []byte) (n int, err error) {
	for range emptyReads {
		if n, err = in.Read(to); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// fillAhead is fill of a buffer that is read ahead: what is left of a part moves to the front of
// the next.
func (b *buffer) fillAhead(n int) ([]byte, error) {
	for b.end-b.at < n && b.err == nil {
		p := <-b.ahead.parts
		left := b.b[b.at:b.end]
		at := MaxBlock - len(left)
		copy(p.b[at:], left)
		if b.b != nil {
			b.ahead.free <- b.b
		}
		b.b, b.at, b.end, b.err = p.b, at, MaxBlock+p.n, p.err
	}
	if have := b.b[b.at:b.end:b.end]; len(have) < n {
		return have, b.err
	}
	return b.b[b.at : b.at+n : b.at+n], nil
}
