package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"xroce/roce"
	"xroce/xsk"
)

// A reopenable is a link with a way to open it again, with the same settings, after it was
// closed. That may block, and fail with whatever the kernel says. To wake the link after it was
// closed must do nothing.
type reopenable struct {
	xsk.Link
	again func() (xsk.Link, error)
	// changed says why it is to be opened again although it works, as of which it is given the
	// description; nil says that it never is.
	changed func(xsk.Info) error
}

// A linkSlot is the link of a queue, which can be taken out and another one put in its place. So
// the queue has a link at any time, and who wakes it or asks what it is needs no lock.
//
// While there is none, and while the queue says that the interface is down, frames come from
// nowhere and go nowhere, as on a cable that was pulled: what would wait in a transmit ring
// instead would leave long afterwards, in the name of QPs that may be gone.
//
// Methods other than those of xsk.Link are called with the progress lock held.
type linkSlot struct {
	link atomic.Pointer[xsk.Link] // nil while there is none
	info atomic.Pointer[xsk.Info] // of the link, or of the last one
	// waiting is held by who waits in the link.
	waiting sync.Mutex
	woken   chan struct{} // ends the wait for a link; has room for one

	again      func() (xsk.Link, error) // nil where a link cannot be opened again
	changed    func(xsk.Info) error     // see reopenable
	fillTarget int                      // the most that was asked for
	discarding bool                     // there is a link that shall not send
	wakeOn     atomic.Int32             // see WakeOn, plus one; 0 for none
	nowhere    []byte                   // where frames are written that nobody sends
	discards   uint64                   // frames that went there
}

var (
	_ xsk.Link   = (*linkSlot)(nil)
	_ xsk.Filler = (*linkSlot)(nil)

	_ xsk.FDWaiter = (*linkSlot)(nil)
)

// newLinkSlot makes a slot with a link in it.
func newLinkSlot(link xsk.Link) *linkSlot {
	s := &linkSlot{woken: make(chan struct{}, 1)}
	if r, ok := link.(reopenable); ok {
		link, s.again, s.changed = r.Link, r.again, r.changed
	}
	s.put(link)
	return s
}

// put puts a link into the slot, which is empty.
func (s *linkSlot) put(link xsk.Link) {
	info := link.Info()
	s.info.Store(&info)
	if f, ok := link.(xsk.Filler); ok && s.fillTarget > 0 {
		f.RaiseFillTarget(s.fillTarget)
	}
	s.link.Store(&link)
	if fd := s.wakeOn.Load(); fd != 0 {
		s.WakeOn(int(fd) - 1)
	}
}

// WakeOn implements xsk.FDWaiter, if the link does. While there is none the descriptor ends no
// wait, which is short.
func (s *linkSlot) WakeOn(fd int) {
	s.wakeOn.Store(int32(fd) + 1)
	if link := s.link.Load(); link != nil {
		if w, ok := (*link).(xsk.FDWaiter); ok {
			w.WakeOn(fd)
		}
	}
}

// watchesFDs reports whether the link is an xsk.FDWaiter.
func (s *linkSlot) watchesFDs() bool {
	link := s.link.Load()
	if link == nil {
		return true // as the one that was there
	}
	_, ok := (*link).(xsk.FDWaiter)
	return ok
}

// take takes the link out. It is still open: closeAside closes it.
func (s *linkSlot) take() xsk.Link {
	link := *s.link.Load()
	s.link.Store(nil)
	s.discarding = false
	link.Wake()
	s.rouse()
	return link
}

// closeAside closes a link that was taken out, when nobody waits in it any more. It needs no
// lock, but must not be called with the progress lock held, which who waits may have.
func (s *linkSlot) closeAside(link xsk.Link) error {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	return link.Close()
}

// rouse ends the wait for a link, or the next.
func (s *linkSlot) rouse() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// sends reports whether frames leave.
func (s *linkSlot) sends() bool { return s.link.Load() != nil && !s.discarding }

// Info implements xsk.Link. Unlike that of other links it changes: when another one is put in.
func (s *linkSlot) Info() xsk.Info { return *s.info.Load() }

// Receive implements xsk.Link.
func (s *linkSlot) Receive(dst []xsk.RxFrame) int {
	if link := s.link.Load(); link != nil {
		return (*link).Receive(dst)
	}
	return 0
}

// Release implements xsk.Link.
func (s *linkSlot) Release(frames []xsk.RxFrame) {
	if link := s.link.Load(); link != nil {
		(*link).Release(frames)
	}
}

// RaiseFillTarget implements xsk.Filler.
func (s *linkSlot) RaiseFillTarget(frames int) {
	s.fillTarget = max(s.fillTarget, frames)
	if link := s.link.Load(); link != nil {
		if f, ok := (*link).(xsk.Filler); ok {
			f.RaiseFillTarget(frames)
		}
	}
}

// Reserve implements xsk.Link. Frames that nobody sends share their memory, which has room for
// the packets of QPs that are connected with a longer path MTU than the last link had.
func (s *linkSlot) Reserve(dst []xsk.TxFrame) int {
	if s.sends() {
		return (*s.link.Load()).Reserve(dst)
	}
	if n := max(s.info.Load().MaxFrame, roce.LongestFrame); len(s.nowhere) < n {
		s.nowhere = make([]byte, n)
	}
	for i := range dst {
		dst[i] = xsk.TxFrame{Data: s.nowhere}
	}
	return len(dst)
}

// Transmit implements xsk.Link.
func (s *linkSlot) Transmit(frames []xsk.TxFrame) {
	if s.sends() {
		(*s.link.Load()).Transmit(frames)
		return
	}
	s.discards += uint64(len(frames))
	clear(frames)
}

// Return implements xsk.Link.
func (s *linkSlot) Return(frames []xsk.TxFrame) {
	if s.sends() {
		(*s.link.Load()).Return(frames)
	}
}

// Flush implements xsk.Link.
func (s *linkSlot) Flush() error {
	if link := s.link.Load(); link != nil {
		return (*link).Flush()
	}
	return nil
}

// Pending implements xsk.Link.
func (s *linkSlot) Pending() bool {
	link := s.link.Load()
	return link != nil && (*link).Pending()
}

// Drained reports whether all that was sent has left.
func (s *linkSlot) Drained() bool {
	link := s.link.Load()
	if link == nil {
		return true
	}
	if d, ok := (*link).(xsk.Drainer); ok {
		return d.Drained()
	}
	return !(*link).Pending()
}

// Wait implements xsk.Link. Where there is no link it waits for one.
func (s *linkSlot) Wait(timeout time.Duration) error {
	if waited, err := s.waitInside(timeout); waited {
		return err
	}
	if timeout < 0 {
		<-s.woken
		return nil
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-s.woken:
	case <-timer.C:
	}
	return nil
}

// waitInside waits in the link, if there is one.
func (s *linkSlot) waitInside(timeout time.Duration) (waited bool, err error) {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	link := s.link.Load()
	if link == nil {
		return false, nil
	}
	err = (*link).Wait(timeout)
	if s.link.Load() != link {
		err = nil // it was taken out meanwhile: that it failed is known
	}
	return true, err
}

// Wake implements xsk.Link. Who puts a link in or takes it out wakes both, for one that comes at
// this time.
func (s *linkSlot) Wake() {
	if link := s.link.Load(); link != nil {
		(*link).Wake()
		return
	}
	s.rouse()
}

// Stats implements xsk.Link: those of the link, without any that were before it.
func (s *linkSlot) Stats() (xsk.Stats, error) {
	if link := s.link.Load(); link != nil {
		return (*link).Stats()
	}
	return xsk.Stats{}, nil
}

// Close implements xsk.Link.
func (s *linkSlot) Close() error {
	if link := s.link.Load(); link != nil {
		return (*link).Close()
	}
	return nil
}
