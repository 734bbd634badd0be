package engine

import (
	"time"

	"xroce/bpf"
	"xroce/roce"
)

// missedLook is how often a device looks for packets that it missed. Where that says that the card
// has more queues than before, what comes there is lost until then.
const missedLook = 100 * time.Millisecond

// missed are the packets of ours that came on a receive queue for which no socket is registered:
// queues were left out, the card has more of them than before, or a socket is gone.
type missed struct {
	begun bool
	seen  uint64 // when it was looked last
	told  uint64 // when it was logged last
	first uint64 // at the first look: those are of before
}

// look asks how many there are.
func (m *missed) look(d *Device) {
	if d.program == nil {
		return
	}
	count, err := d.program.Count(bpf.PassNoSocket)
	if err != nil {
		return // closed
	}
	m.see(d, count.Packets)
}

// see raises an event when there are more than at the last look, and logs the first of them and
// each time that they are twice as many as before. The card may have been given more queues, of
// which only some drivers tell by a notification.
func (m *missed) see(d *Device, n uint64) {
	if !m.grown(n) {
		return
	}
	d.raise(AsyncEvent{Type: roce.EventQueueMissed})
	if n -= m.first; n >= 2*m.told {
		m.told = n
		d.options.Logger.Warn("packets of ours came on a receive queue without a socket and "+
			"went to the kernel; 'ethtool -l' and 'ethtool -x' tell what queues the card uses",
			"device", d.Name(), "packets", n)
	}
	d.interfaceChanged()
}

// grown reports whether there are more than at the last look, of which there was one.
func (m *missed) grown(n uint64) bool {
	if !m.begun {
		m.begun, m.first = true, n
	}
	grown := m.seen < n && n > m.first
	m.seen = n
	return grown
}
