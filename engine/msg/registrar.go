package msg

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"xroce/engine"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// A registrar answers what the machine wants of memory, without the lock of the endpoint: to
// register and to take keys away may wait for those who move packets. A goroutine of its own does
// it, or whoever waits for a message, see drive.
type registrar struct {
	endpoint *Endpoint
	regions  engine.MRPool // of messages

	callers atomic.Int32 // that look for requests by themselves
	count   atomic.Int32 // of waiting
	mu      sync.Mutex
	waiting []*msg.Request
	taken   int // of these
	slow    int // requests that wait for pages, on goroutines of their own
	wake    chan struct{}
	quit    chan struct{}
	gone    chan struct{}
}

func (m *registrar) start(e *Endpoint) {
	m.endpoint, m.wake = e, make(chan struct{}, 1)
	m.quit, m.gone = make(chan struct{}), make(chan struct{})
	go m.run()
}

// stop ends it once all that was asked for is answered.
func (m *registrar) stop() {
	close(m.quit)
	<-m.gone
}

// ask queues a request. It never blocks, and may be called with any lock held.
func (m *registrar) ask(r *msg.Request) {
	m.mu.Lock()
	if m.taken > 0 && len(m.waiting) == cap(m.waiting) { // there is room in front
		n := copy(m.waiting, m.waiting[m.taken:])
		clear(m.waiting[n:])
		m.waiting, m.taken = m.waiting[:n], 0
	}
	m.waiting = append(m.waiting, r)
	m.count.Add(1)
	m.mu.Unlock()
	if m.callers.Load() == 0 {
		m.kick()
	}
}

// kick wakes the goroutine. It never blocks.
func (m *registrar) kick() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// enter counts a caller that will look for requests, until leave.
func (m *registrar) enter() { m.callers.Add(1) }

// leave ends enter, and leaves what is not answered to the goroutine.
func (m *registrar) leave() {
	if m.callers.Add(-1) == 0 && m.asked() {
		m.kick()
	}
}

// serve answers what is asked for now, for a caller between enter and leave.
func (m *registrar) serve() {
	for r := m.next(); r != nil; r = m.next() {
		m.answer(r)
	}
}

// asked reports whether there are requests.
func (m *registrar) asked() bool { return m.count.Load() > 0 }

// next takes the oldest request, nil when there is none.
func (m *registrar) next() *msg.Request {
	if !m.asked() {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken == len(m.waiting) {
		return nil
	}
	r := m.waiting[m.taken]
	m.waiting[m.taken] = nil
	if m.taken++; m.taken == len(m.waiting) {
		m.waiting, m.taken = m.waiting[:0], 0
	}
	m.count.Add(-1)
	return r
}

func (m *registrar) run() {
	defer close(m.gone)
	for {
		if r := m.next(); r != nil {
			m.answer(r)
			continue
		}
		select {
		case <-m.wake:
		case <-m.quit:
			if m.idle() {
				return
			}
		}
	}
}

// idle reports whether nothing waits.
func (m *registrar) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken == len(m.waiting) && m.slow == 0
}

// answer answers one request, and lets the machine go on. One that copies from or to pages that are
// absent is answered later.
func (m *registrar) answer(r *msg.Request) {
	if r.Kind != msg.Load && r.Kind != msg.Store {
		memory, err := m.endpoint.provide(r.Conn.User.(*Conn), r)
		m.tell(r, memory, err)
		return
	}
	if f := move(r); f != mem.FaultPage {
		m.tell(r, msg.Memory{}, moved(f))
		return
	}
	m.mu.Lock()
	m.slow++
	m.mu.Unlock()
	go func() {
		m.tell(r, msg.Memory{}, moveWhole(r, m.quit))
		m.mu.Lock()
		m.slow--
		m.mu.Unlock()
		m.kick()
	}()
}

// tell tells the machine the answer.
func (m *registrar) tell(r *msg.Request, memory msg.Memory, err error) {
	e, c := m.endpoint, r.Conn.User.(*Conn)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.dev.Now()
	e.machine.Answer(now, r, memory, err)
	if r.Kind == msg.Release && c.err != nil {
		c.closePDs()
	}
	e.progress(now)
}

// errEmpty says that there is no memory to give a key to.
var errEmpty = errors.New("msg: a message without bytes has no key")

// A Domain is a protection domain of a device: that of the connections with a peer.
type Domain struct {
	Device *engine.Device // nil for one that is gone, which is asked for nothing
	PD     *engine.PD
	Pool   *engine.MRPool // of regions for messages, which do not last; nil for none
}

// Provide does what a machine of messages asks for, with memory of devices, whose numbers are
// those of the machine's adapters: what an Endpoint does on a goroutine, for those who drive a
// machine themselves, of which the regions of messages (msg.Region) are not: those they answer
// for themselves. It may wait for those who move packets. The errors are those of
// engine.Device.AllocMR and RegMR; no device has anything of the memory then.
func Provide(on []Domain, r *msg.Request) (all msg.Memory, err error) {
	if _, ours := r.Region.(*part); r.Region != nil && !ours {
		return msg.Memory{}, errRegion
	}
	switch r.Kind {
	case msg.Release:
		return msg.Memory{}, free(r.Given.Owner)
	case msg.Load, msg.Store:
		return msg.Memory{}, moveWhole(r, nil)
	}
	kind, pieces := r.Kind, r.Pieces
	for number, d := range on {
		if d.Device == nil || r.Conn.Adapters()>>number&1 == 0 {
			continue
		}
		m, err := provide(d, number, r, kind, pieces)
		if err != nil {
			return msg.Memory{}, errors.Join(err, free(all.Owner))
		}
		*all.By(uint8(number)) = m.Key
		all.Owner = together(all.Owner, m.Owner.(*engine.MR))
		if kind == msg.Allocate { // the others know the same memory
			all.Bytes = m.Bytes
			kind, pieces = msg.Expose, [][]byte{m.Bytes}
		}
	}
	if all.Owner == nil {
		return msg.Memory{}, errNoDevice
	}
	return all, nil
}

// errRegion says that memory of a message is of another owner.
var errRegion = fmt.Errorf("%w: a region that is not of this package", msg.ErrInvalid)

// errNoDevice says that all devices of a connection are gone.
var errNoDevice = errors.New("msg: no device is left to register memory with")

// provide is Provide on one device.
func provide(
	d Domain, number int, r *msg.Request, kind msg.RequestKind, pieces [][]byte,
) (msg.Memory, error) {
	var rights mem.Access
	switch {
	case r.Remote:
		rights = mem.LocalWrite | mem.RemoteWrite
	case r.ToRead:
		rights = mem.RemoteRead
	case r.Region == nil || r.Write:
		rights = mem.LocalWrite
	}
	if r.Region != nil {
		mr, err := r.Region.(*part).expose(d, number, r.Size, rights)
		if err != nil {
			return msg.Memory{}, err
		}
		return described(mr, nil, mr), nil
	}
	if kind == msg.Expose {
		return expose(d, pieces, rights)
	}
	mr, err := d.Device.AllocMR(d.PD, r.Size, rights)
	if err != nil {
		return msg.Memory{}, err
	}
	return described(mr, mr.Bytes(), mr), nil
}

// expose gives one key to all pieces, which it looks at alone: more than one that is not empty are
// laid end to end.
func expose(d Domain, pieces [][]byte, rights mem.Access) (msg.Memory, error) {
	var only []byte
	filled := 0
	for _, p := range pieces {
		if len(p) > 0 {
			only = p
			filled++
		}
	}
	var mr *engine.MR
	var err error
	switch filled {
	case 0:
		return msg.Memory{}, errEmpty
	case 1:
		mr, err = d.register(only, rights)
	default:
		mr, err = d.registerSeveral(pieces, rights)
	}
	if err != nil {
		return msg.Memory{}, err
	}
	return described(mr, nil, mr), nil
}

// register registers memory for a while.
func (d Domain) register(b []byte, rights mem.Access) (*engine.MR, error) {
	if d.Pool == nil {
		return d.Device.RegMR(d.PD, b, rights)
	}
	return d.Pool.RegMR(d.Device, d.PD, b, rights)
}

// registerSeveral is register of more than one piece.
func (d Domain) registerSeveral(pieces [][]byte, rights mem.Access) (*engine.MR, error) {
	if d.Pool == nil {
		return d.Device.RegSG(d.PD, pieces, rights)
	}
	return d.Pool.RegSG(d.Device, d.PD, pieces, rights)
}

// described is a region as the machine knows it. Its owner is the region, or an owner of several.
func described(mr *engine.MR, b []byte, of any) msg.Memory {
	key := msg.Key{Addr: mr.Addr(), LKey: mr.LKey(), RKey: mr.RKey()}
	return msg.Memory{Bytes: b, Key: key, Owner: of}
}
