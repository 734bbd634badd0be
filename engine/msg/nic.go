package msg

import (
	"errors"
	"fmt"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce/msg"
)

// A Rail is a device of an endpoint and its connection manager.
type Rail struct {
	Device  *engine.Device
	Manager *cm.Manager
}

// A nic is a device of an endpoint, and what the endpoint has there. The first one stands for all
// where one is enough.
type nic struct {
	number  uint8
	dev     *engine.Device
	manager *cm.Manager
	cq      *engine.CQ
	handle  *engine.ServiceHandle

	// Under the endpoint's lock:
	rails   map[uint32]*rail // by QPN
	last    *rail            // of the last completion, nil when it has left
	lastQPN uint32
	taken   uint64 // completions of the CQ
	entries int    // of the CQ that the rails may need
	err     error  // the device is gone
}

// addNIC makes an endpoint live on one more device.
func (e *Endpoint) addNIC(of Rail) (err error) {
	n := &nic{
		number: uint8(len(e.nics)), dev: of.Device, manager: of.Manager, rails: map[uint32]*rail{},
	}
	if n.cq, err = n.dev.CreateCQ(2 * e.receives()); err != nil {
		return err
	}
	e.nics = append(e.nics, n)
	if n.number == 0 {
		e.nic = n
	}
	return nil
}

// railOf finds the rail of a queue pair, nil when that is closed: most often the one before. The
// caller holds mu.
func (n *nic) railOf(qpn uint32) *rail {
	if n.last == nil || n.lastQPN != qpn {
		n.last, n.lastQPN = n.rails[qpn], qpn
	}
	return n.last
}

// remove has no rail found by a queue pair. The caller holds mu.
func (n *nic) remove(qpn uint32) {
	delete(n.rails, qpn)
	n.last = nil
}

// serve has the devices call the endpoint.
func (e *Endpoint) serve() (err error) {
	for _, n := range e.nics {
		n.handle, err = n.dev.AddService(service{e, n}, n.cq)
		if err != nil {
			return err
		}
	}
	return nil
}

// leaveNICs gives back what the endpoint has on its devices.
func (e *Endpoint) leaveNICs() error {
	var err error
	e.closeHandles()
	for _, n := range e.nics {
		err = errors.Join(err, n.cq.Close())
	}
	return err
}

// closeHandles ends the calls of the devices.
func (e *Endpoint) closeHandles() {
	for _, n := range e.nics {
		if n.handle != nil {
			n.handle.Close()
		}
	}
}

// wakeAll has every device call the endpoint.
func (e *Endpoint) wakeAll() {
	for _, n := range e.nics {
		n.handle.Wake()
	}
}

// armAll arms the CQs, and reports whether something has come meanwhile.
func (e *Endpoint) armAll() bool {
	came := false
	for _, n := range e.nics {
		came = n.err == nil && n.cq.Arm(false) || came
	}
	return came
}

// lose takes a device out of use, with which the rails on it are lost. The endpoint ends with the
// last one. The caller holds mu.
func (e *Endpoint) lose(n *nic, err error) {
	if n.err != nil || e.err != nil {
		return
	}
	n.err = fmt.Errorf("msg: %w", err)
	e.endParting(func(r *rail) bool { return r.nic == n })
	for _, other := range e.nics {
		if other.err == nil {
			now := e.dev.Now()
			for _, r := range n.rails {
				if r.core != nil {
					r.core.Lose(now, n.err)
				}
			}
			e.progress(now)
			e.wakeAll() // for the deadline
			return
		}
	}
	e.end(n.err)
}

// provide answers what the machine wants of memory, on every device of the connection but those
// that are gone. All that it has on a device is of one protection domain, which has no queue pair
// but those of this peer: so a device refuses the key of one peer to every other (IBA 10.6.3.4). A
// window of type 2 for each region would do the same, for a second key, a work request and its
// completion.
func (e *Endpoint) provide(c *Conn, r *msg.Request) (msg.Memory, error) {
	on := e.domains(c)
	return Provide(on[:], r)
}

// domains are those of a connection, by the number of the device.
func (e *Endpoint) domains(c *Conn) (on [msg.MaxRails]Domain) {
	e.mu.Lock()
	for _, n := range e.nics {
		if n.err == nil {
			on[n.number] = Domain{n.dev, c.pds[n.number], &e.memory.regions}
		}
	}
	e.mu.Unlock()
	return on
}
