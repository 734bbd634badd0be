package demo

import (
	"context"
	"errors"
	"fmt"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce/mem"
)

// The hosts have their devices open.
type hosts struct {
	dev [2]*engine.Device
	pd  [2]*engine.PD
}

// openBoth opens the devices of both hosts. The tap, which may be nil, sees what host
// 0 sends and receives.
func (w *cable) openBoth(o engine.Options, tap engine.Tap) (*hosts, error) {
	h := &hosts{}
	for host := range h.dev {
		options := o
		if host == 0 {
			options.Tap = tap
		}
		dev, err := w.open(host, options)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.dev[host], h.pd[host] = dev, dev.AllocPD()
	}
	return h, nil
}

// close closes the devices and with them all that is on them.
func (h *hosts) close() error {
	var errs []error
	for _, d := range h.dev {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// fence takes both progress locks, which orders what we wrote before what the
// devices read, and what they wrote before what we read: a packet through the
// kernel is no synchronisation that the Go memory model knows.
func (h *hosts) fence() error { return errors.Join(h.dev[0].Err(), h.dev[1].Err()) }

// counter reads one counter of a host.
func (h *hosts) counter(host int, name string) (uint64, error) {
	counters, err := h.dev[host].Counters()
	if err != nil {
		return 0, err
	}
	for _, c := range counters {
		if c.Name == name {
			return c.Value, nil
		}
	}
	return 0, fmt.Errorf("host %d has no counter %s", host, name)
}

// A pair is a QP of each host, connected to each other.
type pair struct {
	*hosts
	end [2]*peer.End
}

// Depths of the work queues of a pair. Receives are more than sends, so that
// no message ever finds the other end without one.
const (
	sendDepth = 128
	recvDepth = 512
)

// ackTimeout is the local ACK timeout code: two seconds. The default of 67 ms
// would send packets again when something else keeps the CPUs for a while.
const ackTimeout = 19

// allRights let the other end do everything.
const allRights = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic |
	mem.FlushGlobal

// create makes a QP at each host, in state RESET. A host that brings no CQ gets
// one for all that its QP can produce.
func (h *hosts) create(init [2]engine.QPInit) (*pair, error) {
	p := &pair{hosts: h}
	for host, dev := range h.dev {
		i := init[host]
		i.SignalAll, i.MaxSendWR, i.MaxRecvWR = true, sendDepth, recvDepth
		if i.SendCQ == nil {
			var err error
			if i.SendCQ, err = dev.CreateCQ(sendDepth + recvDepth); err != nil {
				return nil, err
			}
			i.RecvCQ = i.SendCQ
		}
		qp, err := dev.CreateQP(h.pd[host], i)
		if err != nil {
			return nil, err
		}
		e := &peer.End{Dev: dev, PD: h.pd[host], CQ: i.RecvCQ, QP: qp}
		if err := e.ChooseGID(peer.AutoGID, nil, nil); err != nil {
			return nil, err
		}
		p.end[host] = e
	}
	return p, nil
}

// connect makes a QP at each host and connects them. The rights are what each
// grants the other.
func (h *hosts) connect(
	ctx context.Context, rights mem.Access, init [2]engine.QPInit,
) (*pair, error) {
	p, err := h.create(init)
	if err != nil {
		return nil, err
	}
	for _, end := range p.end {
		if err := end.QP.Init(rights); err != nil {
			return nil, err
		}
	}
	for host, end := range p.end {
		err := end.Connect(ctx, p.end[1-host].Local, engine.ConnectOptions{Timeout: ackTimeout})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// disconnect closes the QPs.
func (p *pair) disconnect() {
	for _, end := range p.end {
		end.QP.Close()
	}
}
