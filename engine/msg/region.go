package msg

import (
	"fmt"
	"time"

	"xroce/engine"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// ErrMemory says that memory of a message cannot be accessed: nothing is mapped there any more, or
// it may not be written.
var ErrMemory = msg.ErrMemory

// A Region is memory that the caller has registered, for messages that go from there and come there
// as it is: pieces that a layout puts together, pages that are brought in when they are accessed,
// all that the process has (an implicit key), a file, or plain memory that is registered once.
// Nothing is packed, and no memory is registered for a message. It is safe for concurrent use.
type Region struct {
	endpoint *Endpoint
	by       [msg.MaxRails]*engine.MR
}

// Region makes a region of memory that was registered with each device of the endpoint, once, in
// any protection domain of the caller's. It needs no rights of peers: those get a key for each
// message, and with mem.LocalWrite messages can be received there. The regions stay the caller's,
// who deregisters them; while a message is under way there that is engine.ErrBusy. The error is
// msg.ErrInvalid of package roce/msg.
func (e *Endpoint) Region(of ...*engine.MR) (*Region, error) {
	r := &Region{endpoint: e}
	for _, mr := range of {
		n := e.nicOf(mr)
		switch {
		case n == nil:
			return nil, fmt.Errorf("%w: a region of a device that is not of the endpoint",
				msg.ErrInvalid)
		case r.by[n.number] != nil:
			return nil, fmt.Errorf("%w: two regions of a device", msg.ErrInvalid)
		}
		r.by[n.number] = mr
	}
	for _, n := range e.nics {
		if r.by[n.number] == nil {
			return nil, fmt.Errorf("%w: no region of %s", msg.ErrInvalid, n.dev.Name())
		}
	}
	return r, nil
}

// nicOf finds the device of a region, nil when it is another one.
func (e *Endpoint) nicOf(mr *engine.MR) *nic {
	for _, n := range e.nics {
		if mr != nil && mr.Of(n.dev) {
			return n
		}
	}
	return nil
}

// Span is n bytes of the region, off bytes behind its beginning; with an implicit key, off is the
// address.
func (r *Region) Span(off uint64, n int) Span { return Span{Region: r, Off: off, Length: n} }

// A Span is a part of a region. The zero value is none.
type Span struct {
	Region *Region
	Off    uint64
	Length int
}

// A part is the span of a message that is under way, as the machine knows it.
type part struct {
	Span
	held   [msg.MaxRails]*engine.MR // its regions, but those of devices that are gone
	first  *engine.MR               // of these
	steady bool
}

// hold makes a part of a span, and keeps its regions as they are. The caller holds the lock of the
// endpoint.
func (p *part) hold(e *Endpoint, s Span, write bool) error {
	switch {
	case s.Region.endpoint != e:
		return fmt.Errorf("%w: a region of another endpoint", msg.ErrInvalid)
	case s.Length < 0:
		return fmt.Errorf("%w: %d bytes of a region", msg.ErrInvalid, s.Length)
	}
	p.Span, p.steady = s, true
	for i, n := range e.nics {
		if n.err != nil {
			continue
		}
		mr := s.Region.by[i]
		if err := mr.Hold(p.in(mr), uint64(s.Length), write); err != nil {
			p.end()
			return fmt.Errorf("msg: the region of a message: %w", err)
		}
		if p.held[i] = mr; p.first == nil {
			p.first = mr
		}
		p.steady = p.steady && mr.Steady(p.in(mr), uint64(s.Length))
	}
	if p.first == nil {
		return errNoDevice
	}
	return nil
}

// end lets go of all that is held.
func (p *part) end() {
	for i, mr := range p.held {
		if mr != nil {
			mr.LetGo()
			p.held[i] = nil
		}
	}
	p.first = nil
}

// in is the address of the part in a region.
func (p *part) in(mr *engine.MR) uint64 { return mr.Addr() + p.Off }

// Len, Steady, Load and Store are those of a region of the machine.
func (p *part) Len() int     { return p.Length }
func (p *part) Steady() bool { return p.steady }

func (p *part) Load(off int, dst []byte)  { always(p.load(off, dst)) }
func (p *part) Store(off int, src []byte) { always(p.store(off, src)) }

// always is for memory that is steady and held, so that nobody can take it away: that it cannot be
// accessed would be a mistake of ours, and what was copied wrong.
func always(f mem.Fault) {
	if f != mem.OK {
		panic("msg: memory that is held: " + f.String())
	}
}

func (p *part) load(off int, dst []byte) mem.Fault {
	return p.first.Load(p.in(p.first)+uint64(off), dst)
}

func (p *part) store(off int, src []byte) mem.Fault {
	return p.first.Store(p.in(p.first)+uint64(off), src)
}

// expose gives the first n bytes a key on a device, for one message.
func (p *part) expose(d Domain, number, n int, rights mem.Access) (*engine.MR, error) {
	mr, pool := p.held[number], d.Pool
	if mr == nil {
		return nil, errNoDevice
	}
	if pool == nil {
		pool = &engine.MRPool{}
	}
	return pool.RegPart(mr, d.PD, p.in(mr), uint64(n), rights)
}

// Pauses between looks at pages that are being brought in.
const (
	firstPause = 50 * time.Microsecond
	lastPause  = time.Millisecond
)

// move does what a Load or a Store asks for, if the pages are there.
func move(r *msg.Request) mem.Fault {
	p := r.Region.(*part)
	if r.Kind == msg.Load {
		return p.load(r.Off, r.Bytes)
	}
	return p.store(r.Off, r.Bytes)
}

// moved is the error of a fault.
func moved(f mem.Fault) error {
	if f == mem.OK {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrMemory, f)
}

// moveWhole is move that waits for pages: until quit, and those of a message that is sent until its
// connection is over.
func moveWhole(r *msg.Request, quit <-chan struct{}) error {
	var over <-chan struct{}
	if c, ok := r.Conn.User.(*Conn); ok && r.Kind == msg.Load {
		over = c.Done()
	}
	timer := time.NewTimer(firstPause)
	defer timer.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if f := move(r); f != mem.FaultPage {
			return moved(f)
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-over:
			return ErrClosed
		case <-quit:
			return ErrClosed
		}
	}
}
