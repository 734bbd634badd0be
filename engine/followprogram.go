package engine

import (
	"errors"
	"time"

	"xroce/bpf"
	"xroce/roce"
)

// programLook is how often a device asks whether its XDP program is still attached. The kernel
// tells nobody when that ends: no notification of rtnetlink, and nothing that poll(2) shows.
const programLook = 50 * time.Millisecond

// maxReattachPause bounds the time between two tries to attach the program again.
const maxReattachPause = time.Second

// followProgram notices that somebody detached the XDP program, or put another one in its place:
// from then on nothing is received. It is attached again if the options say so.
func (d *Device) followProgram() {
	log := d.options.Logger.With("device", d.Name())
	for d.watchProgram() {
		d.resets.detached.Add(1)
		d.raise(AsyncEvent{Type: roce.EventPortErr})
		if !d.options.Reattach {
			log.Error("somebody detached the XDP program: nothing is received any more")
			return
		}
		log.Warn("somebody detached the XDP program, which is attached again")
		if !d.reattach() {
			return
		}
		d.resets.reattached.Add(1)
		d.raise(AsyncEvent{Type: roce.EventPortActive})
		log.Info("the XDP program is attached again")
	}
}

// watchProgram waits until the program is not attached any more. It reports false when the device
// has ended.
func (d *Device) watchProgram() bool {
	tick := time.NewTicker(programLook)
	defer tick.Stop()
	for {
		select {
		case <-d.failed:
			return false
		case <-tick.C:
		}
		// What cannot be asked now is asked again.
		if attached, err := d.program.Attached(); err == nil && !attached {
			return true
		}
	}
}

// reattach attaches the program again, as soon as that is possible. It reports false when the
// device has ended.
func (d *Device) reattach() bool {
	said := ""
	for pause := programLook; ; pause = min(2*pause, maxReattachPause) {
		err := d.inNamespace(d.program.Reattach)
		switch {
		case d.Failed() || errors.Is(err, bpf.ErrClosed):
			return false
		case err == nil:
			return true
		case err.Error() != said:
			said = err.Error()
			d.options.Logger.Warn("the XDP program cannot be attached again yet",
				"device", d.Name(), "error", err)
		}
		d.pause(pause)
	}
}
