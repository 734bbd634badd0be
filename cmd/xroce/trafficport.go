package main

import (
	"context"
	"errors"

	"xroce/bpf"
	"xroce/cmd/xroce/internal/traffic"
	"xroce/xsk"
)

// This file opens the interfaces that test frames leave, or come to.

// openSender opens an interface to send test frames from.
func (a *app) openSender(ctx context.Context, f *portFlags, to string) (*traffic.SendPort, error) {
	a.captureFile = f.capture
	if err := a.setMetrics(f.metrics); err != nil {
		return nil, err
	}
	o := f.PortOptions
	o.Fell = func(why error) {
		a.logger.Warn("frames go over the socket, not as live frames", "interface", o.Interface,
			"error", why)
	}
	port, err := traffic.OpenSender(ctx, o, to)
	if err != nil {
		return nil, err
	}
	a.warnGeneric(port.Name, port)
	a.warnLimited(port.Name, port.Links)
	err = a.captureLinks(port.Name, port.Links)
	if err == nil {
		_, err = a.meterLinks(port.Name, port.Links)
	}
	if err != nil {
		return nil, errors.Join(err, port.Close())
	}
	port.Link = port.Links[0]
	return port, nil
}

// openSink opens an interface to collect test frames from. The meter is nil where none was asked
// for.
func (a *app) openSink(f *portFlags) (*traffic.SinkPort, *traffic.Meter, error) {
	a.captureFile = f.capture
	if err := a.setMetrics(f.metrics); err != nil {
		return nil, nil, err
	}
	port, err := traffic.OpenSink(f.PortOptions)
	if err != nil {
		return nil, nil, err
	}
	links := []xsk.Link{port.Link}
	a.warnGeneric(port.Name, port)
	a.warnLimited(port.Name, links)
	var meter *traffic.Meter
	if err = a.captureLinks(port.Name, links); err == nil {
		meter, err = a.meterLinks(port.Name, links)
	}
	if err != nil {
		return nil, nil, errors.Join(err, port.Close())
	}
	port.Link = links[0]
	return port, meter, nil
}

// An attached knows where the XDP program of a port runs, and why not in the driver where that was
// tried.
type attached interface {
	Attached() (mode bpf.Mode, nativeErr error)
}

// warnGeneric tells who did not ask for generic mode that it has come to that.
func (a *app) warnGeneric(name string, port attached) {
	if _, err := port.Attached(); err != nil {
		a.logger.Warn("the XDP program runs in generic mode, which is slower: the driver has "+
			"no native one for this interface", "device", name, "error", err.Error())
	}
}

// warnLimited tells that there are fewer frames than there should be, on the first link of which
// that is so.
func (a *app) warnLimited(name string, links []xsk.Link) {
	for _, link := range links {
		if why := link.Info().Limited; why != "" {
			a.logger.Warn("there are fewer frames than by default", "device", name, "because", why)
			return
		}
	}
}

// attachReport says in a report where the XDP program runs that takes frames, which not all have.
type attachReport struct {
	Attach string `json:"attach,omitempty"` // native or generic
	// Because is why it is not native, where nobody asked for generic.
	Because string `json:"attach_because,omitempty"`
}

func newAttachReport(port attached) (r attachReport) {
	mode, err := port.Attached()
	if mode != bpf.Auto {
		r.Attach = mode.String()
	}
	if err != nil {
		r.Because = err.Error()
	}
	return r
}

// printAttach prints where the XDP program ran, if there was one.
func (a *app) printAttach(r *attachReport) {
	if r.Attach != "" {
		a.printf("the XDP program ran in %s mode\n", r.Attach)
	}
}
