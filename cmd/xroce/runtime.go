package main

import (
	"xroce/engine"
	"xroce/engine/control"
)

// show lets `xroce res` of other processes see a device that was opened. What keeps
// it from that keeps nobody from using the device.
func (a *app) show(d *engine.Device) {
	if a.runtime == "" {
		return
	}
	if a.control == nil {
		server, err := control.Listen(a.runtime)
		if err != nil {
			a.logger.Info("xroce res will not see this process", "error", err.Error())
			a.runtime = ""
			return
		}
		a.control = server
	}
	a.control.Add(d)
}

// hide ends what show began.
func (a *app) hide() {
	if a.control == nil {
		return
	}
	if err := a.control.Close(); err != nil {
		a.logger.Info("control socket", "error", err.Error())
	}
	a.control = nil
}
