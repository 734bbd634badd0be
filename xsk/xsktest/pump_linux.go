package xsktest

import (
	"fmt"

	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// What the kernel does with the rings, after net/xdp/xsk.c and xsk_queue.h.

// headroom is what the kernel leaves free in front of a received frame's bytes.
const headroom = 256

// maxPieces is the number of descriptors that a sent frame may have.
const maxPieces = 18

// slot returns the entry at a free-running index.
func slot[T uint64 | xsk.Desc](m *xsk.RingMemory[T], index uint32) *T {
	return &m.Entries[index&uint32(len(m.Entries)-1)]
}

// used and room count the entries and the free slots of a ring.
func used[T uint64 | xsk.Desc](m *xsk.RingMemory[T]) int {
	return int(m.Producer.Load() - m.Consumer.Load())
}

func room[T uint64 | xsk.Desc](m *xsk.RingMemory[T]) int { return len(m.Entries) - used(m) }

// produce adds an entry, which must have room.
func produce[T uint64 | xsk.Desc](m *xsk.RingMemory[T], v T) {
	at := m.Producer.Load()
	*slot(m, at) = v
	m.Producer.Store(at + 1)
}

// unread counts the entries that the kernel has not read. It panics when there
// are more than slots: the producer has overrun the ring.
func unread[T uint64 | xsk.Desc](m *xsk.RingMemory[T], read uint32) int {
	n := int(m.Producer.Load() - read)
	if n > len(m.Entries) {
		panic(fmt.Sprintf("xsktest: %d entries in a ring of %d", n, len(m.Entries)))
	}
	return n
}

// consume takes the oldest entry, which must exist. It does not publish.
func consume[T uint64 | xsk.Desc](m *xsk.RingMemory[T], read *uint32) T {
	v := *slot(m, *read)
	*read++
	return v
}

// Send implements xsk.Kernel.
func (k *Kernel) Send(fd int) unix.Errno {
	hooked := errno(k.enter("Send"))
	defer k.mu.Unlock()
	f, err := k.socket(fd)
	switch {
	case err != nil:
		return errno(err)
	case k.gone || !f.sock.bound:
		return unix.ENXIO
	case k.down:
		return unix.ENETDOWN
	case hooked != 0 && hooked != unix.EBUSY:
		return hooked
	}
	s := f.sock
	if unread(&s.tx, s.txRead) == 0 {
		s.tx.Consumer.Store(s.txRead) // looking for more publishes what was read
		return 0
	}
	if hooked == unix.EBUSY { // the device drops the next frame
		if _, e := s.next(); e != 0 {
			return e
		}
		s.complete(k.o.Lag)
		return unix.EBUSY
	}
	before := s.txRead
	e := k.transmit(s)
	if s.txRead != before {
		s.tx.Consumer.Store(s.txRead)
	}
	s.complete(k.o.Lag)
	return e
}

// transmit sends up to a budget of descriptors.
func (k *Kernel) transmit(s *sock) unix.Errno {
	start := s.txRead
	for unread(&s.tx, s.txRead) > 0 {
		if int(s.txRead-start) >= s.budget {
			return unix.EAGAIN
		}
		frame, e := s.next()
		if e == unix.EINVAL { // counted; the call stops there, without an error
			return 0
		}
		if e != 0 {
			return e
		}
		if to := k.peer.bound[s.queue%k.peer.o.Queues]; to != nil {
			k.peer.deliver(to.sock, frame)
		}
	}
	return 0
}

// next takes one frame off the TX ring. EAGAIN means that the completion ring
// has no room for it, EINVAL that it was invalid.
func (s *sock) next() ([]byte, unix.Errno) {
	n := 1
	for at := s.txRead; slot(&s.tx, at).Options&xsk.PktContd != 0; at++ {
		if n++; n > unread(&s.tx, s.txRead) {
			return nil, unix.EAGAIN // the rest is not there yet
		}
	}
	if room(&s.comp)-len(s.sent) < n {
		return nil, unix.EAGAIN
	}
	var frame []byte
	valid := n <= maxPieces
	for range n {
		d := consume(&s.tx, &s.txRead)
		last := d.Addr + uint64(d.Len) - 1
		if d.Len == 0 || last >= uint64(len(s.mem)) || d.Options&^xsk.PktContd != 0 ||
			d.Addr/uint64(s.chunk) != last/uint64(s.chunk) || n > 1 && s.flags&xsk.BindMulti == 0 {
			valid = false
			s.stats.TxInvalidDescs++
			continue
		}
		frame = append(frame, s.mem[d.Addr:last+1]...)
		s.sent = append(s.sent, d.Addr)
	}
	if !valid {
		return nil, unix.EINVAL
	}
	return frame, 0
}

// complete completes all but the newest keep sent descriptors.
func (s *sock) complete(keep int) {
	for len(s.sent) > keep {
		produce(&s.comp, s.sent[0])
		s.sent = s.sent[1:]
	}
}

// deliver copies a frame into chunks of the fill ring and appends it to the RX
// ring, whole or not at all.
func (k *Kernel) deliver(s *sock, frame []byte) {
	// Only now what the last frame took: its descriptors are long in the RX ring.
	s.fill.Consumer.Store(s.fillRead)
	per := int(s.chunk) - headroom
	n := (len(frame) + per - 1) / per
	switch {
	case k.down || k.gone:
		return
	case n > 1 && s.flags&xsk.BindMulti == 0:
		s.stats.RxDropped++
		return
	case unread(&s.fill, s.fillRead) < n:
		s.stats.RxDropped++
		s.stats.RxFillRingEmptyDescs++
		return
	case room(&s.rx) < n:
		s.stats.RxRingFull++
		return
	}
	for len(frame) > 0 {
		// Aligned mode: whatever address in the chunk was given means the chunk.
		addr := consume(&s.fill, &s.fillRead)&^uint64(s.chunk-1) + headroom
		part := frame[:min(per, len(frame))]
		copy(s.mem[addr:], part)
		frame = frame[len(part):]
		d := xsk.Desc{Addr: addr, Len: uint32(len(part))}
		if len(frame) > 0 {
			d.Options = xsk.PktContd
		}
		produce(&s.rx, d)
	}
	k.cond.Broadcast()
}

// Recv implements xsk.Kernel.
func (k *Kernel) Recv(fd int) unix.Errno {
	hooked := errno(k.enter("Recv"))
	defer k.mu.Unlock()
	f, err := k.socket(fd)
	switch {
	case err != nil:
		return errno(err)
	case hooked != 0:
		return hooked
	case k.gone || !f.sock.bound:
		return unix.ENXIO
	case k.down:
		return unix.ENETDOWN
	}
	return 0
}

// Inject delivers a frame to the socket on a queue as if it came off the wire,
// also one that the other end could not send.
func (k *Kernel) Inject(queue int, frame []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.bound[queue]; f != nil {
		k.deliver(f.sock, frame)
	}
}

// Forge puts descriptors into a socket's RX ring and addresses into its
// completion ring as no kernel should.
func (k *Kernel) Forge(queue int, rx []xsk.Desc, completed []uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.bound[queue].sock
	for _, d := range rx {
		produce(&s.rx, d)
	}
	for _, a := range completed {
		produce(&s.comp, a)
	}
}
