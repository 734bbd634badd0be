package dump

import "io"

// outletSize is how many bytes wait at most before they are written.
const outletSize = 1 << 18

// An outlet is what a Sink writes to: bytes wait until there are many, and of those that were
// written it is known how many packets they are. After an error there is nothing but that.
type outlet struct {
	to      io.Writer
	count   func(b []byte) uint64 // how many packets are whole in what was put
	waiting []byte
	packets uint64 // that were written
	err     error
}

// put adds what is whole: a packet, or what is between packets.
func (o *outlet) put(b []byte) error {
	if o.err == nil && len(o.waiting)+len(b) > outletSize {
		_ = o.flush()
	}
	if o.err == nil {
		o.waiting = append(o.waiting, b...)
	}
	return o.err
}

// flush writes what waits.
func (o *outlet) flush() error {
	if o.err != nil || len(o.waiting) == 0 {
		return o.err
	}
	n, err := o.to.Write(o.waiting)
	if err == nil && n < len(o.waiting) {
		err = io.ErrShortWrite
	}
	o.packets += o.count(o.waiting[:n])
	o.waiting, o.err = o.waiting[:0], err
	return err
}
