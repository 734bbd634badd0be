package play

import (
	"context"
	"sync"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// lossPPM is the loss of the cases of that fault: one frame in a hundred.
const lossPPM = 10_000

// lossy runs a case on a cable that loses frames until three quarters of its data
// have passed. The tools end when they have all they wait for, and an end whose
// last acknowledgement was lost would then send in vain to a queue pair that is
// no more: that is a flaw of theirs, which no transport can make up for.
func lossy(
	ctx context.Context, l *lab.Lab, t *cases.Tool, c cases.Case, w *watch,
) (wrong, output string) {
	calm := make(chan struct{})
	var once sync.Once
	left := cases.DataPackets(c) * 3 / 4
	w.mu.Lock()
	w.each = func(_ softroce.End, p *wire.Packet) bool {
		if !p.Spec.Is(wire.ClassAck) {
			left--
		}
		if left <= 0 {
			once.Do(func() { close(calm) })
		}
		return false
	}
	w.mu.Unlock()
	over, stop := context.WithCancel(ctx)
	var healing sync.WaitGroup
	l.Cable.Lose(lossPPM, 1)
	healing.Go(func() {
		select {
		case <-calm:
		case <-over.Done():
		}
		l.Cable.Lose(0, 0)
	})
	wrong, output = talk(ctx, l, t, c)
	stop()
	healing.Wait()
	return wrong, output
}
