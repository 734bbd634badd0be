package msg

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/msg"
)

// A rail is a queue pair of a connection.
type rail struct {
	conn    *Conn
	nic     *nic
	cm      *cm.Conn
	qp      *engine.QP
	control *engine.MR             // of the receives
	sges    [lateReceives]roce.SGE // those of owed
	scratch [slotLen]byte

	// Under the endpoint's lock:
	core    *msg.Rail
	early   []roce.Completion // that came before core was there
	owed    []roce.RecvWR     // receives that are to be posted again
	owing   bool              // the endpoint knows that
	leaving bool              // it is being given back
	gone    chan struct{}     // closed when it is lost
	taken   chan struct{}     // closed when it is, and all that is complete of it was taken
	until   uint64            // completions of the device, with which that is so at the latest
}

// maxFarewells is for how many rails that were given back an endpoint waits when it is closed. A
// peer that does not confirm the end may come again and again.
const maxFarewells = 256

func (c *Conn) newRail(n *nic) *rail {
	return &rail{conn: c, nic: n, gone: make(chan struct{}), taken: make(chan struct{})}
}

// prepare makes the receives of a queue pair and makes the rail known.
func (r *rail) prepare(qp *engine.QP) (err error) {
	e, n := r.conn.endpoint, r.nic
	count := e.receives() + lateReceives
	r.control, err = n.dev.AllocMR(r.conn.pds[n.number], count*slotLen, recvAccess)
	if err != nil {
		return err
	}
	r.qp = qp
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range count {
		if err := r.owe(i); err != nil {
			return errors.Join(err, r.control.Deregister())
		}
	}
	if err := r.repay(); err != nil {
		return errors.Join(err, r.control.Deregister())
	}
	if err := errors.Join(e.err, n.err); err != nil {
		return errors.Join(err, r.control.Deregister())
	}
	n.rails[qp.QPN()] = r
	return nil
}

// begin joins a rail with the machine. The caller holds the endpoint's lock.
func (r *rail) begin(now roce.Time, core *msg.Rail) {
	r.core, core.User = core, r
	r.conn.rails = append(r.conn.rails, r)
	for i := range r.early {
		r.take(now, &r.early[i])
	}
	r.early = nil
}

// watch has a rail end with the peer, on a goroutine that Close waits for. Who calls it is counted
// in attempts, or Close may have waited before.
func (e *Endpoint) watch(r *rail) { e.watchers.Go(r.watch) }

// watch has the rail end when the peer has hung up. The service does it, behind what had come
// before: only there may completions be taken on every device.
func (r *rail) watch() {
	select {
	case <-r.gone:
		return
	case <-r.cm.Done():
	}
	e := r.conn.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangUps = append(e.hangUps, r)
	r.nic.handle.Wake()
}

// leave begins to give back a rail that is lost, or whose connection is over. The caller holds
// the endpoint's lock.
func (r *rail) leave() {
	if r.leaving {
		return
	}
	r.leaving = true
	close(r.gone)
	r.conn.endpoint.leaving.Go(r.dismantle)
}

// dismantle gives back what is of the device. It does not wait for the end of the time-wait, which
// a peer that does not confirm the end makes last for minutes.
func (r *rail) dismantle() {
	c, e := r.conn, r.conn.endpoint
	r.cm.Close() // which moves the queue pair to ERR: all that was posted is complete
	e.mu.Lock()
	if e.err == nil && r.nic.err == nil {
		r.until = r.nic.taken + uint64(r.nic.cq.Depth())
		e.parting = append(e.parting, r)
		r.nic.handle.Wake()
	} else {
		close(r.taken) // nobody looks any more
	}
	e.mu.Unlock()
	<-r.taken
	r.cm.Destroy()
	e.mu.Lock()
	e.noteFarewell(r.cm.Released())
	r.nic.remove(r.qp.QPN())
	c.count(r)
	c.rails = slices.DeleteFunc(c.rails, func(other *rail) bool { return other == r })
	r.core.Gone(e.dev.Now())
	e.progress(e.dev.Now())
	e.mu.Unlock()
	_ = r.control.Deregister() // no window is bound to it: it cannot fail
	e.mu.Lock()
	over := c.err != nil
	e.mu.Unlock()
	if over {
		c.closePDs()
	}
	e.leave(r.nic)
}

// noteFarewell keeps the end of a time-wait for Close. The caller holds mu.
func (e *Endpoint) noteFarewell(over <-chan struct{}) {
	e.farewells = append(e.farewells, over)
	if len(e.farewells) <= maxFarewells {
		return
	}
	e.farewells = slices.DeleteFunc(e.farewells, func(over <-chan struct{}) bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	if more := len(e.farewells) - maxFarewells; more > 0 {
		e.farewells = slices.Delete(e.farewells, 0, more)
	}
}

// awaitFarewells waits for the ends of the time-waits, or until it is late. Nobody adds any more.
func (e *Endpoint) awaitFarewells(late <-chan time.Time) {
	for _, over := range e.farewells {
		select {
		case <-over:
		case <-late:
			return
		}
	}
}

// forget gives back what a rail has that did not come about.
func (r *rail) forget() {
	e := r.conn.endpoint
	e.mu.Lock()
	if r.qp != nil {
		r.nic.remove(r.qp.QPN())
	}
	e.mu.Unlock()
	if r.qp != nil {
		r.qp.Close() // the manager would, after the time-wait
	}
	if r.control != nil {
		_ = r.control.Deregister()
	}
	e.leave(r.nic)
}

// join dials a further rail of a connection.
func (c *Conn) join(ctx context.Context, n *nic, to netip.AddrPort) (*rail, error) {
	e := c.endpoint
	ctx, settled, err := e.attempt(ctx, n)
	if err != nil {
		return nil, err
	}
	defer settled()
	r := c.newRail(n)
	ours := e.hello(n, c.service)
	ours.Session = c.session
	if r.cm, err = n.manager.Dial(ctx, to, e.setup(r, ours)); err != nil {
		r.forget()
		return nil, e.refused(ours, err)
	}
	theirs, err := e.hear(ours, r.cm.Private())
	if err == nil && theirs.Session != c.session {
		err = msg.ErrSession
	}
	return r, r.settle(ours, &theirs, err)
}

// admitRail takes a further rail that a peer has dialled. Who does not know the token of a session
// is refused.
func (e *Endpoint) admitRail(ctx context.Context, n *nic, q *cm.Request, theirs *msg.Hello) {
	e.mu.Lock()
	core, err := e.machine.Session(theirs)
	e.mu.Unlock()
	if err != nil {
		e.refuse(n, q, theirs.Service, err)
		return
	}
	ctx, settled, err := e.attempt(ctx, n)
	if err != nil {
		e.refuse(n, q, theirs.Service, err)
		return
	}
	defer settled()
	r := core.User.(*Conn).newRail(n)
	ours := e.hello(n, theirs.Service)
	ours.Session = theirs.Session
	if r.cm, err = q.Accept(ctx, e.setup(r, ours)); err != nil {
		r.forget()
		return
	}
	_ = r.settle(ours, theirs, nil) // which the peer notices
}

// settle has the machine use a further rail that is connected, or hangs up.
func (r *rail) settle(ours, theirs *msg.Hello, err error) error {
	if err == nil {
		err = r.add(ours, theirs)
	}
	if err != nil {
		r.cm.Destroy()
		r.forget()
		return err
	}
	r.conn.endpoint.watch(r)
	return nil
}

func (r *rail) add(ours, theirs *msg.Hello) error {
	c, e := r.conn, r.conn.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := errors.Join(e.err, r.nic.err, c.err); err != nil {
		return err
	}
	now := e.dev.Now()
	core, err := c.core.AddRail(now, ours, theirs, e.options.Depth)
	if err != nil {
		return err
	}
	r.begin(now, core)
	core.Start(now)
	e.progress(e.dev.Now())
	return nil
}
