package roce_test

import (
	"fmt"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// BenchmarkBlocks writes 64 KiB that lie in blocks with gaps: as a layout, packed by
// hand, as lists of 32 SGEs, and beside them 64 KiB without gaps.
func BenchmarkBlocks(b *testing.B) {
	const length = 1 << 16
	for _, block := range []int{8, 64, 512, 4096} {
		for _, way := range []string{"layout", "packed", "sges", "contiguous"} {
			b.Run(fmt.Sprintf("%s/%d", way, block), func(b *testing.B) {
				p := newRCPair(b, options{
					MTU: wire.MTU4096, Memory: 4 * length, SGE: 32, Window: 16, Unsignaled: true,
				})
				from, to := p.ends[0], p.ends[1]
				r := from.laid(from.column(0, block, 2*block, length/block), 0)
				packed, err := from.keys.Register(from.domain, make([]byte, length), 0)
				must(b, err)
				wr := roce.SendWR{
					Opcode: roce.OpWrite, RemoteAddr: to.region.Addr(), RKey: to.region.RKey(),
					SGList: from.sge(0, length),
				}
				messages := 1
				switch way {
				case "layout":
					wr.SGList = whole(r)
				case "packed":
					wr.SGList = whole(packed)
				case "sges":
					wr.SGList, messages = nil, length/32/block
					for i := range 32 {
						wr.SGList = append(wr.SGList, from.sge(2*i*block, block)...)
					}
					if messages == 0 { // half of the pieces are as many as there are
						wr.SGList, messages = wr.SGList[:length/block], 1
					}
				}
				b.SetBytes(length)
				for b.Loop() {
					if way == "packed" {
						to, at := packed.Bytes(), from.buf
						for len(to) > 0 {
							copy(to[:block], at)
							to, at = to[block:], at[2*block:]
						}
					}
					for range messages {
						if err := from.qp.PostSend(&wr); err != nil {
							p.run()
							must(b, from.qp.PostSend(&wr))
						}
					}
					p.run()
				}
			})
		}
	}
}
