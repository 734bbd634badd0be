package demo

import (
	"math/rand/v2"
	"sync/atomic"

	"xroce/xsk"
)

// A loss is what a bad cable did.
type loss struct {
	counts func() (sent, lost uint64) // frames of both directions
}

// A lossyLink loses frames on their way out, each with the same chance and
// independent of the others, as a seed decides.
type lossyLink struct {
	xsk.Link
	random       *rand.Rand
	share        float64
	kept, gone   []xsk.TxFrame
	frames, lost atomic.Uint64
}

func newLossyLink(l xsk.Link, share float64, seed uint64) *lossyLink {
	room := l.Info().TxFrames
	return &lossyLink{
		Link: l, random: rand.New(rand.NewPCG(seed, 0)), share: share,
		kept: make([]xsk.TxFrame, 0, room), gone: make([]xsk.TxFrame, 0, room),
	}
}

// Transmit implements xsk.Link.
func (l *lossyLink) Transmit(frames []xsk.TxFrame) {
	l.kept, l.gone = l.kept[:0], l.gone[:0]
	for _, f := range frames {
		if l.random.Float64() < l.share {
			l.gone = append(l.gone, f)
		} else {
			l.kept = append(l.kept, f)
		}
	}
	l.frames.Add(uint64(len(frames)))
	l.lost.Add(uint64(len(l.gone)))
	l.Link.Transmit(l.kept)
	l.Link.Return(l.gone)
}
