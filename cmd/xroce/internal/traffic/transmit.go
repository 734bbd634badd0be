package traffic

import (
	"errors"
	"fmt"
	"sync"

	"xroce/xsk"
)

// A Transmit is a way in which frames leave.
type Transmit uint8

// The ways of a Transmit. The zero value is the socket.
const (
	BySocket Transmit = iota // AF_XDP
	ByXDP                    // live frames of an XDP program
	ByEither                 // live frames, or the socket where there are none
)

// String is its name for people and programs.
func (t Transmit) String() string { return [...]string{"socket", "xdp", "auto"}[t] }

// A transmitter sends live frames. live.Transmitter is one.
type transmitter interface {
	Room() int
	Reserve() (slot uint32, frame []byte, ok bool)
	Return(slot uint32)
	Queue(slot uint32, length int)
	Queued() int
	First() []byte
	Drop()
	Run() (sent, lost uint64, err error)
	Close() error
}

// A liveLink is a link whose frames leave as live frames, while that works, and else over the
// link that it is made of, which receives in any case. What is queued then goes there, in order,
// and none is lost. It is used as its Link is.
type liveLink struct {
	xsk.Link
	live  transmitter
	only  bool        // never over the link
	fell  func(error) // is told once why live frames do not go
	cause error       // why, nil while they do
	one   [1]xsk.TxFrame

	packets, bytes, lost uint64
}

// liveRef marks the Ref of a live frame. Those of links are addresses, far below.
const liveRef = 1 << 63

// Reserve implements xsk.Link.
func (l *liveLink) Reserve(dst []xsk.TxFrame) int {
	if l.cause != nil && !l.only {
		return l.Link.Reserve(dst)
	}
	most := l.Link.Info().MaxFrame
	for i := range dst {
		slot, frame, ok := l.live.Reserve()
		if !ok {
			return i
		}
		dst[i] = xsk.TxFrame{Data: frame[:most], Ref: liveRef | uint64(slot)}
	}
	return len(dst)
}

// Transmit implements xsk.Link.
func (l *liveLink) Transmit(frames []xsk.TxFrame) {
	for i := range frames {
		f := &frames[i]
		if f.Ref&liveRef == 0 {
			l.Link.Transmit(frames[i : i+1])
			continue
		}
		if room := l.live.Room(); f.Len > room {
			l.fall(fmt.Errorf("a frame of %d bytes is longer than %d, which a live frame has: %w",
				f.Len, room, errors.ErrUnsupported))
		}
		l.packets++
		l.bytes += uint64(f.Len)
		l.live.Queue(uint32(f.Ref), f.Len)
		*f = xsk.TxFrame{}
	}
}

// Return implements xsk.Link.
func (l *liveLink) Return(frames []xsk.TxFrame) {
	for i := range frames {
		f := &frames[i]
		if f.Ref&liveRef == 0 {
			l.Link.Return(frames[i : i+1])
			continue
		}
		l.live.Return(uint32(f.Ref))
		*f = xsk.TxFrame{}
	}
}

// Flush implements xsk.Link.
func (l *liveLink) Flush() error {
	if l.cause == nil && l.live.Queued() > 0 {
		_, lost, err := l.live.Run()
		l.lost += lost
		if err != nil {
			l.fall(err)
		}
	}
	switch {
	case l.cause == nil:
		return nil
	case l.only:
		return l.cause
	}
	l.move()
	return l.Link.Flush()
}

// fall has everything go over the link from now on.
func (l *liveLink) fall(why error) {
	if l.cause != nil {
		return
	}
	if l.cause = why; !l.only {
		l.fell(why)
	}
}

// move hands what is queued to the link, as much as that has frames for.
func (l *liveLink) move() {
	for l.live.Queued() > 0 && l.Link.Reserve(l.one[:]) > 0 {
		l.one[0].Len = copy(l.one[0].Data, l.live.First())
		l.live.Drop()
		l.packets-- // they are the link's now
		l.bytes -= uint64(l.one[0].Len)
		l.Link.Transmit(l.one[:])
	}
}

// Pending implements xsk.Link.
func (l *liveLink) Pending() bool { return l.live.Queued() > 0 || l.Link.Pending() }

// Stats implements xsk.Link. TxBusy has what the kernel did not hand to the driver.
func (l *liveLink) Stats() (xsk.Stats, error) {
	st, err := l.Link.Stats()
	st.TxPackets += l.packets
	st.TxBytes += l.bytes
	st.TxBusy += l.lost
	st.TxOutstanding += uint64(l.live.Queued())
	return st, err
}

// Close implements xsk.Link.
func (l *liveLink) Close() error { return errors.Join(l.live.Close(), l.Link.Close()) }

// A wayOut knows how the frames of a port leave.
type wayOut struct {
	mu    sync.Mutex
	way   Transmit
	cause error // why not as live frames, though they were wanted
	told  func(error)
}

// fell notes why live frames do not go, the first time. Links of several goroutines call it.
func (w *wayOut) fell(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.way = BySocket
	if w.cause == nil {
		w.cause = why
		if w.told != nil {
			w.told(why)
		}
	}
}

// Way is how frames leave now: BySocket or ByXDP. The error says why not as live frames, though
// they were wanted, nil where they go so or nobody wanted that.
func (w *wayOut) Way() (Transmit, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.way, w.cause
}
