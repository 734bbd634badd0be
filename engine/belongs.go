package engine

import (
	"fmt"

	"xroce/roce"
)

// This file tests that objects are open and of the device that they are used with.

// check tests that the CQ is an open one of this device. The caller holds the
// life lock.
func (c *CQ) check(d *Device) error {
	switch {
	case c.device != d:
		return fmt.Errorf("%w: the CQ is not of this device", roce.ErrInvalid)
	case c.closed:
		return fmt.Errorf("%w: the CQ is closed", roce.ErrInvalid)
	}
	return nil
}

// check tests that the SRQ is an open one of this device. The caller holds the
// life lock.
func (s *SRQ) check(d *Device) error {
	switch {
	case s.device != d:
		return fmt.Errorf("%w: the SRQ is not of this device", roce.ErrInvalid)
	case s.closed:
		return fmt.Errorf("%w: the SRQ is closed", roce.ErrInvalid)
	}
	return nil
}

// check tests that the domain is an open one of this device.
func (p *PD) check(d *Device) error {
	switch {
	case p == nil || p.device != d:
		return fmt.Errorf("%w: the PD is not of this device", roce.ErrInvalid)
	case p.users.Load() == pdClosed:
		return fmt.Errorf("%w: the PD is closed", roce.ErrInvalid)
	}
	return nil
}

// check tests that the domain is an open one of this device. The caller holds
// the life lock.
func (x *XRCD) check(d *Device) error {
	switch {
	case x.device != d:
		return fmt.Errorf("%w: the XRC domain is not of this device", roce.ErrInvalid)
	case x.closed:
		return fmt.Errorf("%w: the XRC domain is closed", roce.ErrInvalid)
	}
	return nil
}
