package engine

import (
	"errors"
	"fmt"

	"xroce/engine/host"
	"xroce/roce"
)

// broadcastMAC is everybody's address on Ethernet.
var broadcastMAC = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Join has frames to a group's MAC address, or that of broadcast, received until Leave or Close.
// It returns roce.ErrInvalid for an address that is none of a group, and does nothing for one
// that was joined.
func (p *NativePort) Join(group [6]byte) error {
	if group[0]&1 == 0 {
		return fmt.Errorf("%w: %x is no group", roce.ErrInvalid, group)
	}
	d := p.device
	d.memberships.Lock()
	defer d.memberships.Unlock()
	if err := p.err(); err != nil {
		return err
	}
	if _, joined := p.groups.load()[group]; joined {
		return nil
	}
	if j, ok := d.host.(host.MACJoiner); ok && group != broadcastMAC {
		if err := j.JoinMAC(group); err != nil {
			return err
		}
	}
	p.groups.set(group, struct{}{})
	if err := d.steer(nil); err != nil {
		return errors.Join(err, p.leave(group))
	}
	return nil
}

// Leave ends Join. An error that is not roce.ErrInvalid, which says that the group was not
// joined, says that the interface could not leave the group; nothing is received from it
// nevertheless.
func (p *NativePort) Leave(group [6]byte) error {
	d := p.device
	d.memberships.Lock()
	defer d.memberships.Unlock()
	if _, joined := p.groups.load()[group]; !joined {
		return fmt.Errorf("%w: %x was not joined", roce.ErrInvalid, group)
	}
	return p.leave(group)
}

// leave leaves a group that was joined. The caller holds memberships.
func (p *NativePort) leave(group [6]byte) error {
	d := p.device
	p.groups.remove(group)
	err := d.steer(nil)
	if j, ok := d.host.(host.MACJoiner); ok && group != broadcastMAC {
		err = errors.Join(err, j.LeaveMAC(group))
	}
	return err
}

// leaveAll leaves all groups. The caller holds memberships.
func (p *NativePort) leaveAll() error {
	var errs []error
	for group := range p.groups.load() {
		errs = append(errs, p.leave(group))
	}
	if p.device.failure() != nil {
		return nil // the device has left them, or does when it is closed
	}
	return errors.Join(errs...)
}
