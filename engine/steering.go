package engine

import (
	"errors"
	"sync"

	"xroce/bpf"
	"xroce/encap"
	"xroce/roce/wire"
)

// steering is what the XDP program lets through to a device: RoCE v2 for the addresses in
// its GID table, and what goes by MAC addresses, RoCE v1 and frames of EtherType 0x88b5,
// only as long as somebody here wants that. All else is the kernel's.
//
// RoCE v1 is wanted by QPs that are connected between GIDs of that type, by whoever made
// an address handle with one, until the device closes, because nobody says when a handle
// is not used any more, and from the beginning with Options.RoCEv1.
type steering struct {
	mu     sync.Mutex // held over calls of the program; see locks.go
	owned  map[bpf.Key]bool
	v1     map[*QP]bool // QPs whose path is one of RoCE v1
	always bool         // RoCE v1 is wanted until the end
}

// steer has the program let through what is wanted now. What is new is let through before
// between is called, which may be nil, and what is no longer wanted after it.
func (d *Device) steer(between func()) error {
	d.steering.mu.Lock()
	defer d.steering.mu.Unlock()
	return d.steerLocked(between)
}

// steerLocked is steer. The caller holds the lock of the steering.
func (d *Device) steerLocked(between func()) (err error) {
	if between == nil {
		between = func() {}
	}
	if d.program == nil {
		between()
		return nil
	}
	s := &d.steering
	wanted := d.wantedKeys()
	for key := range wanted {
		if s.owned[key] {
			continue
		}
		if ownErr := d.program.Own(key); ownErr != nil {
			err = errors.Join(err, ownErr)
			continue
		}
		s.owned[key] = true
	}
	between()
	for key := range s.owned {
		if !wanted[key] {
			delete(s.owned, key)
			err = errors.Join(err, d.program.Disown(key))
		}
	}
	return err
}

// wantedKeys are what the program shall let through now. The caller holds the lock of the
// steering.
func (d *Device) wantedKeys() map[bpf.Key]bool {
	v1 := d.steering.always || len(d.steering.v1) > 0
	keys := map[bpf.Key]bool{}
	native := false // to all of our addresses, as a RAW_PACKET QP has it
	switch h := d.etherTypes.load()[encap.EtherTypeNative].(type) {
	case nil:
	case *NativePort:
		// Not that of the queue, which takes over another one after this.
		keys[bpf.NativeKey(d.host.Port().MAC)] = true
		for group := range h.groups.load() {
			keys[bpf.NativeKey(group)] = true
		}
	default:
		native = true
	}
	macs := func(ofV1, ofNative [6]byte) {
		if v1 {
			keys[bpf.V1Key(ofV1)] = true
		}
		if native {
			keys[bpf.NativeKey(ofNative)] = true
		}
	}
	// Only the unspecified address is none to own, and that has no entry and no group.
	ip := func(gid wire.GID) {
		if key, err := bpf.AddrKey(gid.Addr()); err == nil {
			keys[key] = true
		}
	}
	for _, e := range d.gids.Entries() {
		ip(e.GID)
		macs(e.MAC, e.MAC)
	}
	for group := range d.groups.load() {
		ip(group)
		macs(group.MulticastMAC(wire.FramingV1), group.MulticastMAC(groupFraming(group)))
	}
	return keys
}

// groupFraming is that of RoCE v2 packets to a group.
func groupFraming(group wire.GID) wire.Framing {
	if group.IsIPv4() {
		return wire.FramingV2IPv4
	}
	return wire.FramingV2IPv6
}

// wantV1 notes whether the path of a QP is one of RoCE v1. Before it becomes one, the
// program must let the packets through.
func (d *Device) wantV1(q *QP, uses bool) error {
	if d.program == nil {
		return nil
	}
	s := &d.steering
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.v1[q] == uses {
		return nil
	}
	if !uses {
		delete(s.v1, q)
		return ended(d.steerLocked(nil))
	}
	s.v1[q] = true
	err := ended(d.steerLocked(nil))
	if err != nil {
		delete(s.v1, q) // so it is tried again
	}
	return err
}

// wantV1Always has RoCE v1 let through until the device closes.
func (d *Device) wantV1Always() error {
	d.steering.mu.Lock()
	defer d.steering.mu.Unlock()
	if d.steering.always {
		return nil
	}
	d.steering.always = true
	err := ended(d.steerLocked(nil))
	d.steering.always = err == nil // else it is tried again
	return err
}

// ended drops the error of a program whose device is being closed: nothing is let through
// any more, which whoever uses the device is told in other ways.
func ended(err error) error {
	if errors.Is(err, bpf.ErrClosed) {
		return nil
	}
	return err
}
