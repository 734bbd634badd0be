package engine

import (
	"fmt"

	"xroce/encap"
	"xroce/roce"
	"xroce/xsk"
)

// A NativeConfig says how much a NativePort holds. The zero value is a good choice.
type NativeConfig struct {
	// Datagrams is how many may wait to be polled, with those that the last Poll has handed
	// out: 1 to 16384, 0 for 512. Their memory, 8 KiB each, is taken at once. What comes
	// when it is full is dropped, as native_out_of_buffer.
	Datagrams int
	// Notify is called when a datagram has come, and may be nil. It must be quick, must not
	// block, and use neither the port nor the device but for Device.Rouse: the progress lock
	// is held.
	Notify func()
}

// Limits of a NativeConfig.
const (
	maxNativeDatagrams     = 1 << 14
	defaultNativeDatagrams = 512
)

// OpenNative begins to receive native packets. It returns roce.ErrInvalid when the device has a
// port, or a RAW_PACKET QP takes that EtherType.
func (d *Device) OpenNative(c NativeConfig) (*NativePort, error) {
	if c.Datagrams == 0 {
		c.Datagrams = defaultNativeDatagrams
	}
	if c.Datagrams < 1 || c.Datagrams > maxNativeDatagrams {
		return nil, fmt.Errorf("%w: %d native datagrams that wait are not in 1..%d",
			roce.ErrInvalid, c.Datagrams, maxNativeDatagrams)
	}
	p := &NativePort{
		device: d, queue: d.queues[0], stats: &d.native, slots: newNativeSlots(c.Datagrams),
		ready: make(chan struct{}, 1), done: make(chan struct{}), notify: c.Notify,
	}
	d.life.Lock()
	defer d.life.Unlock()
	if err := d.failure(); err != nil {
		return nil, err
	}
	if err := d.addEtherType(encap.EtherTypeNative, p); err != nil {
		return nil, err
	}
	if err := d.steer(nil); err != nil {
		d.removeEtherTypes(p)
		return nil, err
	}
	for _, q := range d.queues {
		q.lock()
		q.sizeReceiveRing(roce.TypeRawPacket) // nothing holds back who sends
		q.mu.Unlock()
	}
	p.stats.begin()
	return p, nil
}

// Close gives the EtherType back to the kernel, leaves all groups, and ends Wait. It is
// idempotent, may come after Device.Close, and the error says that the machine could not leave
// a group.
func (p *NativePort) Close() error {
	d := p.device
	d.memberships.Lock()
	defer d.memberships.Unlock()
	if p.closed.Swap(true) {
		return nil
	}
	close(p.done)
	d.life.Lock()
	d.removeEtherTypes(p)
	d.life.Unlock()
	// What cannot be undone in the program ends with the device.
	_ = d.steer(nil)
	for _, q := range d.queues { // in direct mode, who waits sleeps in the link
		q.lock()
		q.wake()
		q.mu.Unlock()
	}
	return p.leaveAll()
}

// handleFrame implements etherTypeHandler: the datagram is stored by the queue that it came to.
func (p *NativePort) handleFrame(at *queue, _ roce.Time, f *xsk.RxFrame, _ bool) {
	if p.receive(at, f) {
		select {
		case p.ready <- struct{}{}:
		default:
		}
		if p.notify != nil {
			p.notify()
		}
	}
}
