package msg

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"xroce/engine/cm"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// recvAccess is that of the memory of receives.
const recvAccess = mem.LocalWrite

// newConn makes a connection without a peer.
func (e *Endpoint) newConn(service msg.Service) *Conn {
	c := &Conn{endpoint: e, service: service, done: make(chan struct{})}
	for _, n := range e.nics {
		c.pds = append(c.pds, n.dev.AllocPD())
	}
	return c
}

// hello is what this endpoint says of itself by a device.
func (e *Endpoint) hello(n *nic, service msg.Service) *msg.Hello {
	c := &e.options.Machine
	h := &msg.Hello{
		Version: msg.Version, MinVersion: msg.MinVersion,
		Capabilities: msg.CapabilityGet | msg.CapabilityPut | msg.CapabilityProvision,
		Service:      service, Payload: uint32(c.EagerLimit), Slots: uint16(c.Slots),
		Rendezvous: uint16(c.Rendezvous), Receives: uint32(e.receives()), Rail: n.number,
	}
	if len(e.nics) > 1 {
		h.Capabilities |= msg.CapabilityRails
		h.Rails = uint8(len(e.nics))
	}
	return h
}

// railTimeout is the local ACK timeout of queue pairs of which there are several, 67 ms: a rail
// that is gone is given up after half a second, since there is another one.
const railTimeout = 14

// setup is our end of a rail.
func (e *Endpoint) setup(r *rail, ours *msg.Hello) cm.Setup {
	s := cm.Setup{
		PD: r.conn.pds[r.nic.number], Init: e.init(r.nic), Access: rights, Prepare: r.prepare,
		Private: make([]byte, msg.HelloLen),
	}
	if len(e.nics) > 1 {
		s.AckTimeout = railTimeout
	}
	ours.Put(s.Private)
	return s
}

// Dial connects to an endpoint that listens, by the first of the rails of this one to the first
// address, by the second one to the next, and so on: whichever is there first begins the
// connection, and the others join it in the background. A rail that is lost is dialled again
// until the connection is over. The error wraps that of cm.Manager.Dial, of the last address; when
// the peer refuses and says why, also a *msg.StatusError of package roce/msg, which is ErrVersion,
// ErrCapability or ErrService if it is for that.
func (e *Endpoint) Dial(
	ctx context.Context, to netip.AddrPort, further ...netip.AddrPort,
) (*Conn, error) {
	return e.dialRails(ctx, msg.ServiceEndpoint, append([]netip.AddrPort{to}, further...))
}

func (e *Endpoint) dialRails(
	ctx context.Context, service msg.Service, to []netip.AddrPort,
) (c *Conn, err error) {
	if len(to) > len(e.nics) {
		return nil, fmt.Errorf("msg: %w: %d addresses, %d rails", msg.ErrRails, len(to),
			len(e.nics))
	}
	first := 0
	for i, at := range to {
		if c, err = e.dial(ctx, e.nics[i], at, service); err == nil {
			first = i
			break
		}
		err = fmt.Errorf("msg: %v: %w", at, err)
	}
	if err != nil {
		return nil, err
	}
	if !c.core.Several() {
		return c, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending { // nothing is dialled any more, and Close may have waited for those who do
		return c, nil
	}
	for i, at := range to {
		var r *rail
		if i == first {
			r = c.rail
		}
		e.keepers.Go(func() { c.keep(e.nics[i], at, r) })
	}
	return c, nil
}

func (e *Endpoint) dial(
	ctx context.Context, n *nic, to netip.AddrPort, service msg.Service,
) (*Conn, error) {
	ctx, settled, err := e.attempt(ctx, n)
	if err != nil {
		return nil, err
	}
	defer settled()
	c := e.newConn(service)
	c.rail = c.newRail(n)
	ours := e.hello(n, service)
	if c.cm, err = n.manager.Dial(ctx, to, e.setup(c.rail, ours)); err != nil {
		c.forget()
		return nil, e.refused(ours, err)
	}
	theirs, err := e.hear(ours, c.cm.Private())
	c.session = theirs.Session
	if err == nil {
		err = c.open(ours, &theirs)
	}
	if err != nil {
		c.cm.Destroy()
		c.forget()
		return nil, err
	}
	c.start()
	e.watch(c.rail)
	return c, nil
}

// hear judges what a peer says of itself.
func (e *Endpoint) hear(ours *msg.Hello, private []byte) (msg.Hello, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Hear(ours, private)
}

// refused adds to the error of a connection that the peer rejected why it did, if it said so.
func (e *Endpoint) refused(ours *msg.Hello, err error) error {
	var rejected *cm.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	why := new(msg.StatusError)
	if _, said := e.hear(ours, rejected.Private); errors.As(said, &why) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// attempt makes room for a connection. The context ends with the endpoint, too, which waits for
// settled.
func (e *Endpoint) attempt(
	ctx context.Context, n *nic,
) (bound context.Context, settled func(), err error) {
	if err := e.admit(n); err != nil {
		return nil, nil, err
	}
	bound, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return bound, func() {
		stop()
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.attempts--
		e.changed.Broadcast()
	}, nil
}

// forget gives back what a connection has that did not come about.
func (c *Conn) forget() {
	c.rail.forget()
	c.closePDs()
}
