package perf

import (
	"xroce/engine"
	"xroce/roce/wire"
)

// Ready finds what is wrong with a test at this end, and makes its memory, before the peer is met:
// who meets it and goes away with a mistake of its own leaves a peer that learns no reason, and of
// a server that was its only client. What depends on the peer, Run finds. The device is the one of
// Run, and Release gives the memory back.
func (o *Options) Ready(dev *engine.Device) error {
	c := o.Config // a path MTU of the peer's may still make its size another one
	if err := c.fit(dev, c.localMTU(dev), o.Sized); err != nil {
		return err
	}
	if _, err := chooseGID(dev, &c); err != nil {
		return err
	}
	at, err := newLayout(&c, ownSystem)
	if err != nil {
		return err
	}
	o.region, err = newRegion(dev, &c, at.size())
	return err
}

// Release gives back what Ready has made. It may be called in any case, when Run has returned.
func (o *Options) Release() { o.region.deregister() }

// localMTU is the largest path MTU that this end has.
func (c *Config) localMTU(dev *engine.Device) wire.MTU {
	mtu := dev.ActiveMTU()
	if c.MTU != 0 {
		mtu = min(mtu, c.MTU)
	}
	return mtu
}

// fit makes the size of messages fit a path MTU and the interface. sized reports whether the user
// asked for this size.
func (c *Config) fit(dev *engine.Device, mtu wire.MTU, sized bool) error {
	if err := c.fitMTU(mtu, sized); err != nil {
		return err
	}
	return c.fitFrame(dev.Port().MTU, sized)
}
