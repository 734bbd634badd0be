package msg

import "xroce/roce/clock"

// A Region is memory of a message that its owner knows otherwise than by slices: pieces that a
// layout puts together, or pages that may be absent. It is named by keys as it is, or copied to
// and from slots.
//
// Steady memory is always there, and the machine copies it by itself. Of all other memory it asks
// its owner to copy, by Load and Store requests, because that may take long: no other connection
// waits for it.
type Region interface {
	Len() int // in bytes
	Steady() bool
	Load(off int, dst []byte)  // copies from the memory, which is steady
	Store(off int, src []byte) // copies to it
}

// maxLoad is how many bytes of a message in fragments are copied at once from memory that is not
// steady.
const maxLoad = 64 << 10

// absent reports whether a region has to be asked for its bytes.
func absent(r Region) bool { return r != nil && !r.Steady() }

// gather copies from a place in the message. What is not steady was loaded.
func (s *Send) gather(dst []byte, off int) {
	switch {
	case s.Region == nil:
		gather(dst, s.Pieces, off)
	case s.Region.Steady():
		s.Region.Load(off, dst)
	default:
		copy(dst, s.loaded[off-s.loadedAt:])
	}
}

// has is how many of n bytes, from a place in the message on, can be gathered now.
func (s *Send) has(off, n int) int {
	if !absent(s.Region) {
		return n
	}
	return max(0, min(n, s.loadedAt+len(s.loaded)-off))
}

// load has bytes of a message copied, for gather.
func (c *Conn) load(s *Send, off, n int) {
	if cap(s.loaded) < n {
		s.loaded = make([]byte, n)
	}
	s.loaded, s.loadedAt = s.loaded[:n], off
	s.request = Request{
		Kind: Load, Conn: c, Region: s.Region, Off: off, Bytes: s.loaded, Size: n, asker: s,
	}
	c.endpoint.ask(&s.request)
}

// loadWhole reports whether a message that is to be copied to a slot can be, and if not has it
// loaded. It keeps its place at the head of those that wait.
func (c *Conn) loadWhole(s *Send) bool {
	if s.has(0, s.length) == s.length {
		return true
	}
	s.state = sendLoading
	c.load(s, 0, s.length)
	return false
}

// hasLoaded is told that bytes of a message are here, or why they cannot be had.
func (c *Conn) hasLoaded(now clock.Time, s *Send, err error) {
	if err != nil {
		s.loaded = s.loaded[:0]
	}
	switch {
	case s.state == sendLoading && s.cancelled:
		c.finish(s, ErrCancelled)
	case s.state == sendLoading && c.state == connDead:
		c.finish(s, c.err)
	case s.state == sendLoading && err != nil:
		c.pending.Remove(&s.links)
		c.finish(s, err)
	case s.state == sendLoading:
		s.state = sendPending
	default: // in fragments
		s.flying--
		switch {
		case c.state == connDead, s.state == sendEnding:
			c.hide(s)
		case err != nil: // half of it is there, so nothing can follow
			c.part(now, err, StatusNoMemory)
		case s.state == sendFragments:
			c.fragments.Push(&s.links, s)
		}
	}
	c.pump(now)
}

// placeMessage copies a message that is here to the receive that it has, and reports whether that
// is done: memory that is not steady is asked for, and who stores there tells.
func (e *Endpoint) placeMessage(c *Conn, r *Receive, data []byte) bool {
	n := min(len(data), r.size)
	r.Length = n
	e.count.Add(BytesCopiedIn, n)
	switch {
	case r.Region == nil:
		scatter(r.Pieces, 0, data)
		return true
	case n == 0:
		return true
	case r.Region.Steady():
		r.Region.Store(0, data[:n])
		return true
	}
	r.taken = true
	r.kept = append(r.kept[:0], data[:n]...)
	r.store(c, 0, r)
	return false
}

// store has what is kept of a message stored at a place in the receive.
func (r *Receive) store(c *Conn, off int, by asker) {
	r.request = Request{
		Kind: Store, Conn: c, Region: r.Region, Off: off, Bytes: r.kept, Size: len(r.kept),
		asker: by,
	}
	c.endpoint.ask(&r.request)
}

// answer is told that a message that came whole is stored, or why it cannot be.
func (r *Receive) answer(_ clock.Time, q *Request, _ Memory, err error) {
	r.taken = false
	if err != nil {
		r.Length = 0
	}
	c := q.Conn
	c.endpoint.hand(c, r, r.SentTag, uint64(r.Whole), err)
}

// placeFragment copies a part of a message, which comes next, to the receive of that. Memory that
// is not steady gets all parts together that the sender may send, see hasStored.
func (c *Conn) placeFragment(a *arrival, payload []byte) {
	r := a.receive
	c.endpoint.count.Add(BytesCopiedIn, len(payload))
	off := a.done
	a.done += len(payload)
	switch {
	case r.Region == nil:
		scatter(r.Pieces, off, payload)
	case r.Region.Steady():
		r.Region.Store(off, payload)
	default:
		r.kept = append(r.kept, payload...)
		if a.done == a.asked || a.done == a.want {
			r.store(c, a.done-len(r.kept), a)
		}
		return
	}
	switch {
	case a.done == a.want:
		c.end(a)
	case a.asked < a.want && a.asked-a.done <= fragmentFrames*c.endpoint.config.EagerLimit/2:
		c.clear(a)
	}
}

// hasStored is told that parts of a message are stored, or why they cannot be.
func (c *Conn) hasStored(a *arrival, err error) {
	kept := len(a.receive.kept)
	a.receive.kept = a.receive.kept[:0]
	switch {
	case err != nil:
		a.done -= kept
		a.err, a.status = err, StatusNoMemory
		c.end(a)
	case a.done == a.want || c.state == connDead:
		c.end(a)
	default:
		c.clear(a)
	}
}
