package xsk

import "fmt"

// The way of a frame through the socket, in the order of its steps:
//
//	receive   Receive: RX ring -> caller     Release: caller -> fill ring
//	send      Reserve: completion ring -> free -> caller
//	          Transmit: caller -> TX ring     Return: caller -> free
//	forward   Receive, then Forward: caller -> TX ring -> completion -> fill ring
//
// Nothing here makes a system call, except that an empty-handed Receive or
// Reserve wakes a driver that asked for it. flush_linux.go has the rest.

// partial is a received frame in the making: the pieces that came so far.
type partial struct {
	pieces int       // descriptors seen, also those of an oversize frame
	addr   [2]uint64 // of the first two
	len    [2]uint32
}

// ref makes the Ref of a frame or piece at addr. 0 is left to mean none, so that
// a cleared frame is told from the one at address 0.
func ref(addr uint64) uint64 { return addr + 1 }

// deref undoes ref. It panics for a frame that is not handed out.
func deref(r uint64) uint64 {
	if r == 0 {
		panic("xsk: frame was given back before, or never handed out")
	}
	return r - 1
}

// Receive implements Link. A frame of more than two pieces is dropped and
// counted in RxOversize.
func (s *Socket) Receive(dst []RxFrame) int {
	n := 0
	for n < len(dst) {
		batch := s.rx.peek(uint32(len(dst) - n))
		got := batch.len()
		if got == 0 {
			break
		}
		raised := s.fillTarget.adapt(got + s.rx.known())
		n += s.take(batch.first, dst[n:])
		n += s.take(batch.second, dst[n:])
		s.rx.release(got)
		if raised || s.fillTarget.refillable() {
			s.fillSpare()
		}
	}
	if n == 0 {
		s.reap() // forwarded frames go back to the fill ring
		s.wakeRx()
	}
	return n
}

// take turns descriptors into frames, at most one for each descriptor.
func (s *Socket) take(descs []Desc, dst []RxFrame) int {
	n := 0
	for i := range descs {
		d := descs[i] // one read: the memory is shared
		if !s.umem.isOwnedBy(d.Addr, ownerFill) || !s.umem.isRx(s.umem.index(d.Addr)) {
			s.stats.KernelFaults++
			continue
		}
		s.fillTarget.withKernel--
		more := d.Options&PktContd != 0
		if s.part.pieces == 0 && !more {
			s.umem.setOwner(s.umem.index(d.Addr), ownerFill, ownerApp)
			dst[n] = RxFrame{Head: s.umem.bytes(d.Addr, d.Len), Ref: [2]uint64{ref(d.Addr)}}
			s.stats.RxBytes += uint64(d.Len)
			n++
			continue
		}
		if s.assemble(d) && !more {
			dst[n] = s.finish()
			n++
		}
		if !more {
			s.part = partial{}
		}
	}
	s.stats.RxPackets += uint64(n)
	return n
}

// assemble adds a piece to the frame in the making and reports whether the frame
// still fits. Pieces of an oversize frame go straight back to the kernel.
func (s *Socket) assemble(d Desc) bool {
	p := &s.part
	k := p.pieces
	p.pieces++
	if k < len(p.addr) {
		s.umem.setOwner(s.umem.index(d.Addr), ownerFill, ownerRx)
		p.addr[k], p.len[k] = d.Addr, d.Len
		return true
	}
	if k == len(p.addr) { // the third piece: the first two are of no use either
		s.stats.RxOversize++
		for _, a := range p.addr {
			s.refill(a, ownerRx)
		}
	}
	s.refill(d.Addr, ownerFill)
	return false
}

// refill puts one receive chunk into the fill ring and publishes it at once, or makes it
// a spare one when the kernel has what it is to have. Release has a way for many.
func (s *Socket) refill(addr uint64, from owner) {
	c := s.umem.index(addr)
	if s.fillTarget.missing() == 0 {
		s.keepSpare(c, from)
		return
	}
	s.umem.setOwner(c, from, ownerFill)
	slot := s.fill.claim(1)
	*slot.at(0) = addr
	s.fill.submit(1)
	s.fillTarget.withKernel++
}

// finish hands out the assembled frame.
func (s *Socket) finish() RxFrame {
	p := &s.part
	f := RxFrame{}
	for i := range p.pieces {
		s.umem.setOwner(s.umem.index(p.addr[i]), ownerRx, ownerApp)
		f.Ref[i] = ref(p.addr[i])
		s.stats.RxBytes += uint64(p.len[i])
	}
	f.Head = s.umem.bytes(p.addr[0], p.len[0])
	if p.pieces == 2 {
		f.Tail = s.umem.bytes(p.addr[1], p.len[1])
	}
	return f
}

// Release implements Link. It clears the frames.
func (s *Socket) Release(frames []RxFrame) {
	if s.closed {
		return
	}
	need := uint32(len(frames))
	for i := range frames {
		if frames[i].Ref[1] != 0 {
			need++
		}
	}
	slots := s.fill.claim(min(need, s.fillTarget.missing()))
	k := uint32(0)
	for i := range frames {
		f := &frames[i]
		k = s.takeBack(deref(f.Ref[0]), slots, k)
		if f.Ref[1] != 0 {
			k = s.takeBack(deref(f.Ref[1]), slots, k)
		}
		*f = RxFrame{}
	}
	s.fill.submit(k)
	s.fillTarget.withKernel += k
}

// takeBack takes a receive chunk back from the application, into slot k of the fill ring
// if there is one, and returns the slot of the next.
func (s *Socket) takeBack(addr uint64, slots span[uint64], k uint32) uint32 {
	c := s.umem.index(addr)
	if k == slots.len() {
		s.keepSpare(c, ownerApp)
		return k
	}
	s.umem.setOwner(c, ownerApp, ownerFill)
	*slots.at(k) = addr
	return k + 1
}

// keepSpare makes a receive chunk a spare one.
func (s *Socket) keepSpare(c uint32, from owner) {
	s.umem.setOwner(c, from, ownerFree)
	s.fillTarget.spare = append(s.fillTarget.spare, c)
}

// RaiseFillTarget implements Filler.
func (s *Socket) RaiseFillTarget(frames int) {
	if s.closed {
		return
	}
	s.fillTarget.raiseTo(uint32(min(max(0, frames), maxFrames)))
	s.fillSpare()
}

// fillSpare gives the kernel spare chunks, up to what it is to have.
func (s *Socket) fillSpare() {
	f := &s.fillTarget
	n := min(f.missing(), uint32(len(f.spare)))
	slots := s.fill.claim(n)
	for i := range n {
		c := f.spare[len(f.spare)-1]
		f.spare = f.spare[:len(f.spare)-1]
		s.umem.setOwner(c, ownerFree, ownerFill)
		*slots.at(i) = s.umem.addr(c)
	}
	s.fill.submit(n)
	f.withKernel += n
}

// Reserve implements Link. It first takes back what the kernel completed, so
// that the frames handed out are the ones the cache still knows.
func (s *Socket) Reserve(dst []TxFrame) int {
	s.reap()
	if len(s.umem.free) == 0 {
		s.kickZeroCopy()
	}
	n := min(len(dst), len(s.umem.free))
	for i := range n {
		c := s.umem.pop()
		dst[i] = TxFrame{Data: s.umem.frame(c), Ref: ref(s.umem.addr(c))}
	}
	return n
}

// Transmit implements Link. It clears the frames. It panics when Len is not in
// 1 to len(Data), or when a frame is not reserved.
func (s *Socket) Transmit(frames []TxFrame) {
	if s.closed {
		return
	}
	need := uint32(len(frames))
	if s.umem.perTx > 1 {
		for i := range frames {
			if frames[i].Len > int(s.umem.chunk) {
				need++
			}
		}
	}
	slots := s.tx.claim(need)
	k := uint32(0)
	for i := range frames {
		f := &frames[i]
		addr, c := deref(f.Ref), s.umem.index(deref(f.Ref))
		size := s.umem.chunk * s.umem.perTx
		if f.Len < 1 || f.Len > int(size) {
			panic(fmt.Sprintf("xsk: transmit of %d bytes, want 1 to %d", f.Len, size))
		}
		head := min(uint32(f.Len), s.umem.chunk)
		tail := uint32(f.Len) - head
		s.umem.setOwner(c, ownerApp, ownerTx)
		*slots.at(k) = Desc{Addr: addr, Len: head}
		if s.umem.perTx > 1 {
			if tail == 0 {
				s.umem.setOwner(c+1, ownerApp, ownerFree)
			} else {
				slots.at(k).Options = PktContd
				k++
				s.umem.setOwner(c+1, ownerApp, ownerTx)
				*slots.at(k) = Desc{Addr: s.umem.addr(c + 1), Len: tail}
			}
		}
		k++
		s.stats.TxBytes += uint64(f.Len)
		*f = TxFrame{}
	}
	s.outstanding += k
	s.stats.TxPackets += uint64(len(frames))
	s.tx.submit(k)
}

// Return implements Link. It clears the frames.
func (s *Socket) Return(frames []TxFrame) {
	if s.closed {
		return
	}
	for i := range frames {
		s.umem.push(s.umem.index(deref(frames[i].Ref)))
		frames[i] = TxFrame{}
	}
}

// Forward queues received frames for sending, in order and in place: what was
// written into Head and Tail is sent, and each may have been shortened at its
// end, but not to nothing. It clears the frames; their memory receives again
// once they are sent. It takes all frames and returns their number; 0 on a
// closed socket.
func (s *Socket) Forward(frames []RxFrame) int {
	if s.closed {
		return 0
	}
	for i := range frames {
		f := &frames[i]
		pieces := [2][]byte{f.Head, f.Tail}
		n := uint32(1)
		if f.Ref[1] != 0 {
			n = 2
		}
		slots := s.tx.claim(n)
		for j := range n {
			addr := deref(f.Ref[j])
			if len(pieces[j]) == 0 {
				panic("xsk: forward of an empty piece")
			}
			s.umem.setOwner(s.umem.index(addr), ownerApp, ownerTx)
			d := Desc{Addr: addr, Len: uint32(len(pieces[j]))}
			if j+1 < n {
				d.Options = PktContd
			}
			*slots.at(j) = d
		}
		s.outstanding += n
		s.stats.TxBytes += uint64(f.Len())
		s.tx.submit(n)
		*f = RxFrame{}
	}
	s.stats.TxPackets += uint64(len(frames))
	return len(frames)
}

// reap takes back the chunks that the kernel has sent and returns how many
// entries of the completion ring that were.
func (s *Socket) reap() uint32 {
	done := s.comp.peek(s.comp.size)
	n := done.len()
	for i := range n {
		addr := *done.at(i)
		if !s.umem.isOwnedBy(addr, ownerTx) {
			s.stats.KernelFaults++
			continue
		}
		s.outstanding--
		c := s.umem.index(addr)
		if !s.umem.isRx(c) {
			s.umem.sent(c)
			continue
		}
		s.refill(addr, ownerTx)
	}
	s.comp.release(n)
	return n
}
