package engine

import (
	"sync"

	"xroce/encap"
)

// nativeStats count what the native ports of a device did. mu is one of the last locks.
type nativeStats struct {
	mu     sync.Mutex
	used   bool // there has been a port
	rx, tx nativeCount
	full   uint64
	drops  [encap.NumReasons]uint64
}

// A nativeCount counts packets, and bytes of datagrams.
type nativeCount struct{ packets, bytes uint64 }

func (c *nativeCount) add(o nativeCount) {
	c.packets += o.packets
	c.bytes += o.bytes
}

// begin notes that there is a port.
func (s *nativeStats) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
}

func (s *nativeStats) sent(c nativeCount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tx.add(c)
}

func (s *nativeStats) received(c nativeCount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rx.add(c)
}

// nativeOutOfBuffer is the counter of packets that nobody had room for.
const nativeOutOfBuffer = "native_out_of_buffer"

// outOfBuffer counts one of them.
func (s *nativeStats) outOfBuffer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full++
}

// refused counts a packet that was not taken.
func (s *nativeStats) refused(r encap.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops[r]++
}

// counters are those of the ports that the device has had, none if there was none.
func (s *nativeStats) counters() []Counter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.used {
		return nil
	}
	list := []Counter{
		{"native_rx_packets", s.rx.packets, "packets", "raw packets of InfiniBand received"},
		{"native_rx_bytes", s.rx.bytes, "bytes", "bytes of datagrams in those"},
		{"native_tx_packets", s.tx.packets, "packets", "raw packets of InfiniBand sent"},
		{"native_tx_bytes", s.tx.bytes, "bytes", "bytes of datagrams in those"},
		{nativeOutOfBuffer, s.full, "packets", "raw packets dropped: too many waited"},
	}
	// The other reasons are of what is to be sent, and of segments, which whoever puts them
	// together counts.
	for r := encap.TooShort; r <= encap.BadFCS; r++ {
		list = append(list,
			Counter{"native_drop_" + r.String(), s.drops[r], "packets", "raw packets refused"})
	}
	return list
}
