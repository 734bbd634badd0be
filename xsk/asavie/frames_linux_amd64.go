package asavie

import (
	"fmt"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"xroce/xsk"
)

// ref makes the Ref of a frame in buffer n; 0 means none.
func ref(n uint32) uint64 { return uint64(n) + 1 }

// deref undoes ref. It panics for a frame that is not handed out.
func deref(r uint64) uint32 {
	if r == 0 {
		panic("asavie: frame was given back before, or never handed out")
	}
	return uint32(r - 1)
}

// buffer returns buffer n of those in mem.
func buffer(mem []byte, n uint32) []byte {
	from := int(n) * chunkSize
	return mem[from : from+chunkSize : from+chunkSize]
}

// Receive implements xsk.Link. It copies the frames out, then gives the library's
// frames to the kernel again.
func (s *Socket) Receive(dst []xsk.RxFrame) int {
	if s.closed {
		return 0
	}
	n := min(len(dst), len(s.rxFree), s.sock.NumReceived())
	if n == 0 {
		return 0
	}
	for i, d := range s.sock.Receive(n) {
		b := s.rxFree[len(s.rxFree)-1]
		s.rxFree = s.rxFree[:len(s.rxFree)-1]
		head := buffer(s.rxBuf, b)[:d.Len:d.Len]
		copy(head, s.sock.GetFrame(d))
		dst[i] = xsk.RxFrame{Head: head, Ref: [2]uint64{ref(b)}}
		s.stats.RxBytes += uint64(d.Len)
	}
	s.stats.RxPackets += uint64(n)
	s.refill()
	return n
}

// refill gives free frames to the kernel until its share is used up. GetDescs
// does not reserve, so its result goes into the ring at once.
func (s *Socket) refill() {
	n := min(s.rxLimit-s.sock.NumFilled(), s.sock.NumFreeFillSlots())
	if n > 0 {
		s.sock.Fill(s.sock.GetDescs(n))
	}
}

// Release implements xsk.Link. It clears the frames.
func (s *Socket) Release(frames []xsk.RxFrame) {
	for i := range frames {
		s.rxFree = append(s.rxFree, deref(frames[i].Ref[0]))
		frames[i] = xsk.RxFrame{}
	}
}

// Reserve implements xsk.Link.
func (s *Socket) Reserve(dst []xsk.TxFrame) int {
	if s.closed {
		return 0
	}
	s.sock.Complete(s.sock.NumCompleted())
	// A buffer is free as soon as its bytes are copied. What is scarce are the
	// library's frames and slots of its ring, one for each buffer handed out.
	out := s.info.TxFrames - len(s.txFree)
	room := min(s.info.TxFrames-s.sock.NumTransmitted(), s.sock.NumFreeTxSlots()) - out
	n := max(0, min(len(dst), room))
	for i := range n {
		b := s.txFree[len(s.txFree)-1]
		s.txFree = s.txFree[:len(s.txFree)-1]
		dst[i] = xsk.TxFrame{Data: buffer(s.txBuf, b), Ref: ref(b)}
	}
	return n
}

// Return implements xsk.Link. It clears the frames.
func (s *Socket) Return(frames []xsk.TxFrame) {
	for i := range frames {
		s.txFree = append(s.txFree, deref(frames[i].Ref))
		frames[i] = xsk.TxFrame{}
	}
}

// Transmit implements xsk.Link. It copies the frames in and clears them. The
// library makes a send call at once; what that fails with, Flush returns.
func (s *Socket) Transmit(frames []xsk.TxFrame) {
	if s.closed || len(frames) == 0 {
		return
	}
	descs := s.sock.GetDescs(len(frames))
	if len(descs) < len(frames) {
		panic(fmt.Sprintf("asavie: %d free frames for %d reserved ones", len(descs), len(frames)))
	}
	for i := range frames {
		f := &frames[i]
		if f.Len < 1 || f.Len > len(f.Data) {
			panic(fmt.Sprintf("asavie: transmit of %d bytes, want 1 to %d", f.Len, len(f.Data)))
		}
		descs[i].Len = uint32(f.Len)
		descs[i].Options = 0
		copy(s.sock.GetFrame(descs[i]), f.Data[:f.Len])
		s.stats.TxBytes += uint64(f.Len)
	}
	s.stats.TxPackets += uint64(len(frames))
	s.failed = s.send(descs)
	s.Return(frames)
}

// send queues descriptors and makes the library's send call. The library has
// queued the descriptors when it panics, so only the call is to be repeated.
func (s *Socket) send(descs []xdp.Desc) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.recovered(p)
		}
	}()
	s.stats.TxKicks++
	s.sock.Transmit(descs)
	return nil
}

// recovered turns a panic of the library's Transmit into the error that it is
// about. Any other panic goes on.
func (s *Socket) recovered(p any) error {
	err, ok := p.(error)
	if !ok {
		panic(p)
	}
	var rc uint64
	var errno unix.Errno
	const text = "sendto failed with rc=%d and errno=%d"
	if _, e := fmt.Sscanf(err.Error(), text, &rc, &errno); e != nil {
		panic(p)
	}
	if errno == unix.ENETDOWN {
		s.stats.TxNetDown++
	}
	return s.fail("send", errno)
}

// unsent is the number of frames in the TX ring that the kernel has not taken.
func (s *Socket) unsent() int { return s.txRing - s.sock.NumFreeTxSlots() }

// Pending implements xsk.Link.
func (s *Socket) Pending() bool { return !s.closed && s.unsent() > 0 }

// Flush implements xsk.Link. The send call inside Transmit has sent a part; Poll,
// which runs the ring in the kernel and takes completions, sends the rest.
func (s *Socket) Flush() error {
	if s.closed {
		return xsk.ErrClosed
	}
	err := s.failed
	s.failed = nil
	for left := s.unsent(); left > 0 && err == nil; {
		if _, _, err = s.sock.Poll(0); err != nil {
			return s.fail("poll", err)
		}
		now := s.unsent()
		if now == left { // nothing moves: why not?
			if err = s.send(nil); err != nil || s.unsent() == now {
				return err
			}
			now = s.unsent()
		}
		left = now
	}
	return err
}
