package capture

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkShortSend is what a Writer costs a SEND of 64 bytes that leaves in a burst of eight, and
// how many bytes it leaves in the file: the lowest percent of the times that 512 took. Nobody
// writes it: the buffer begins anew when so many bytes are in it.
func BenchmarkShortSend(b *testing.B) {
	const at = 512
	for _, size := range []int{256 << 10, 8 << 20} {
		b.Run(fmt.Sprint(size>>10, "KiB"), func(b *testing.B) {
			w := &Writer{filling: make([]byte, 0, size+minBuffer), wake: make(chan struct{}, 1)}
			w.look()
			p := Packet{Dir: Outbound, Head: make([]byte, 122)}
			p.Info = Info{QPN: 0x52e567, Peer: 0x28aa39, HasWR: true, Verdict: "sent"}
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				for n := range at {
					p.Together, p.WRID = n&7 != 0, uint64(100_000+n)
					w.Packet(&p)
				}
				took = append(took, time.Since(begin))
				if len(w.filling) > size {
					w.filling = w.filling[:0]
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/100])/at, "ns/packet")
			b.ReportMetric(float64(len(appendPacket(nil, &p, 1, 0, 0, nil))), "B/packet")
			if w.Dropped() > 0 {
				b.Error(w.Dropped(), "dropped")
			}
		})
	}
}
