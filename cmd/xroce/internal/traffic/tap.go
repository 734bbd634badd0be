package traffic

import (
	"xroce/engine/capture"
	"xroce/xsk"
)

// A Tap is a link whose frames go to a capture, too: those that come when they are received,
// those that leave when they are handed over. The capture holds up neither. It is used as its
// Link is: by one goroutine at a time.
type Tap struct {
	xsk.Link
	to     *capture.Writer
	packet capture.Packet // the one under way
}

// NewTap returns a Tap of a link.
func NewTap(link xsk.Link, to *capture.Writer) *Tap {
	t := &Tap{Link: link, to: to}
	t.packet.Queue = link.Info().Queue
	return t
}

// Receive implements xsk.Link.
func (t *Tap) Receive(frames []xsk.RxFrame) int {
	n := t.Link.Receive(frames)
	t.packet.Dir = capture.Inbound
	for i := range frames[:n] {
		t.packet.Head, t.packet.Tail = frames[i].Head, frames[i].Tail
		t.to.Packet(&t.packet)
	}
	return n
}

// Transmit implements xsk.Link.
func (t *Tap) Transmit(frames []xsk.TxFrame) {
	t.packet.Dir, t.packet.Tail = capture.Outbound, nil
	for i := range frames {
		t.packet.Head = frames[i].Data[:frames[i].Len]
		t.to.Packet(&t.packet)
	}
	t.Link.Transmit(frames)
}
