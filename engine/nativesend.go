package engine

import (
	"fmt"

	"xroce/encap"
	"xroce/engine/capture"
	"xroce/roce"
)

// A NativeSend is one datagram of NativePort.SendBatch.
type NativeSend struct {
	To       *NativeRoute
	Kind     encap.Kind
	Datagram []byte
}

// Send is SendBatch of one datagram.
func (p *NativePort) Send(to *NativeRoute, k encap.Kind, datagram []byte) error {
	_, err := p.SendBatch([]NativeSend{{to, k, datagram}})
	return err
}

// SendBatch copies datagrams into frames, which it gives to the kernel together, and returns how
// many went. The caller's memory is his again at once.
//
// The error is why the next did not go: an encap.Reason when it cannot be carried, and then
// those behind it may; roce.ErrQueueFull when the interface has no free frame (some come back as
// it sends, and who does not want to wait drops, as a network card does); else ErrClosed or that
// of the device. A datagram goes with all of its segments or not at all. Datagrams never come
// back to this device.
func (p *NativePort) SendBatch(list []NativeSend) (n int, err error) {
	// In parts, so that a long list does not hold up who else needs the queue.
	for n < len(list) && err == nil {
		var sent int
		sent, err = p.sendBurst(list[n:min(n+burst, len(list))])
		n += sent
	}
	return n, err
}

// sendBurst is SendBatch under the progress lock.
func (p *NativePort) sendBurst(list []NativeSend) (n int, err error) {
	q := p.queue
	q.lock()
	defer q.mu.Unlock()
	if err := p.err(); err != nil {
		return 0, err
	}
	if q.err != nil {
		return 0, q.err
	}
	count := nativeCount{}
	q.watch.begin()
	for n < len(list) {
		var packets int
		if packets, err = p.put(&list[n]); err != nil {
			break
		}
		count.packets += uint64(packets)
		count.bytes += uint64(len(list[n].Datagram))
		n++
	}
	p.stats.sent(count)
	if n > 0 {
		q.txDelay.wrote(q.now())
		q.flush()
	}
	if q.link.Pending() {
		q.wakeDriver() // who flushes again soon
	}
	return n, err
}

// errNoFrame is made once: who sends more than the interface takes sees it often.
var errNoFrame = fmt.Errorf("%w: the interface has no free frame", roce.ErrQueueFull)

// minFrame is the shortest frame of Ethernet in bytes, without FCS (IEEE 802.3 4A.4.2).
const minFrame = 60

// put writes the packets of a datagram, and returns how many they are. The caller holds the
// progress lock.
func (p *NativePort) put(s *NativeSend) (int, error) {
	q, to := p.queue, s.To
	cut, reason := to.Template.Cut(s.Kind, s.Datagram, p.id)
	if reason != encap.OK {
		return 0, reason
	}
	need := cut.Packets()
	frames := q.reserve()
	if len(frames) < need {
		return 0, errNoFrame
	}
	frames = frames[:need]
	for i := range frames {
		f := &frames[i]
		if to.n+to.Template.Room > len(f.Data) {
			return 0, fmt.Errorf("%w: room for %d bytes is more than the link has",
				roce.ErrInvalid, to.Template.Room)
		}
		copy(f.Data, to.header[:to.n])
		f.Len = to.n + cut.Next(f.Data[to.n:])
		if f.Len < minFrame {
			clear(f.Data[f.Len:minFrame])
			f.Len = minFrame
		}
		if q.tap != nil {
			q.tap.Frame(capture.Outbound, f.Data[:f.Len], nil)
		}
		if q.watch != nil {
			q.watch.leavesNative(f.Data[:f.Len])
		}
	}
	p.id++
	q.link.Transmit(frames)
	q.txFrom += need
	return need, nil
}
