package roce_test

import (
	"testing"

	"xroce/roce"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A load moves batches of one operation both ways over a pair, and allocates
// nothing itself.
type load struct {
	p     *pair
	op    roce.Opcode
	sends [2]roce.SendWR
	recvs [2]roce.RecvWR
	done  [64]roce.Completion
}

func newLoad(tb testing.TB, op roce.Opcode, n int, o options) *load {
	tb.Helper()
	l := &load{p: newRCPair(tb, o), op: op}
	for i, e := range l.p.ends {
		peer := l.p.ends[1-i]
		l.sends[i] = roce.SendWR{
			Opcode: op, SGList: e.sge(0, n),
			RemoteAddr: peer.region.Addr() + 1<<15, RKey: peer.region.RKey(),
		}
		l.recvs[i] = roce.RecvWR{SGList: e.sge(1<<15, n)}
	}
	return l
}

// batch posts n messages at both ends, lets all of it happen and polls.
func (l *load) batch(n int) {
	for range n {
		for i, e := range l.p.ends {
			if consumesRecv(l.op) {
				must(l.p.tb, e.qp.PostRecv(&l.recvs[i]))
			}
			must(l.p.tb, e.qp.PostSend(&l.sends[i]))
		}
	}
	l.p.run()
	for _, e := range l.p.ends {
		got := l.poll(e.send)
		if consumesRecv(l.op) {
			got += l.poll(e.recv) - n
		}
		if got != n {
			l.p.tb.Fatalf("%d completions of %d", got, n)
		}
	}
}

// poll takes everything from a CQ and counts it.
func (l *load) poll(cq *roce.CQ) (total int) {
	for {
		n, err := cq.Poll(l.done[:])
		must(l.p.tb, err)
		if n == 0 {
			return total
		}
		for i := range l.done[:n] {
			if l.done[i].Status != roce.StatusSuccess {
				l.p.tb.Fatalf("%+v", l.done[i])
			}
		}
		total += n
	}
}

// TestNoAllocations: nothing on the data path allocates, neither when packets
// are lost, doubled and overtaken, nor when receives are late.
func TestNoAllocations(t *testing.T) {
	for _, lossy := range []bool{false, true} {
		for _, op := range allOps {
			l := newLoad(t, op, 3*defaults.MTU.Bytes()+1, options{RetryCnt: 7, Timeout: 4})
			if lossy {
				l.p.fault = func(_, nth int, _ []byte) fault {
					f := fault{Drop: nth%11 == 3, Dup: nth%13 == 5}
					if nth%7 == 2 {
						f.Delay = 5 * roce.Microsecond
					}
					return f
				}
			}
			// The wire of the test is to have all buffers it will ever need.
			l.p.air, l.p.spare = make([]flight, 0, 1<<12), make([][]byte, 0, 1<<12)
			for range 1 << 10 {
				l.p.spare = append(l.p.spare, make([]byte, 1<<9))
			}
			l.batch(16)
			if n := testing.AllocsPerRun(20, func() { l.batch(16) }); n != 0 {
				t.Errorf("%s, lossy %t: %v allocations", op, lossy, n)
			}
			if resent := l.p.ends[0].count[counter.Retransmits]; lossy && resent == 0 {
				t.Errorf("%s: nothing was sent again", op)
			}
		}
	}
}

// BenchmarkSend64 is one SEND of 64 bytes with its acknowledge: post, packet out,
// packet in, completion, at both ends on one core.
func BenchmarkSend64(b *testing.B) { benchmark(b, roce.OpSend, 64, wire.MTU1024) }

// BenchmarkWrite64 is the same for WRITE.
func BenchmarkWrite64(b *testing.B) { benchmark(b, roce.OpWrite, 64, wire.MTU1024) }

// BenchmarkRead64 is the same for READ.
func BenchmarkRead64(b *testing.B) { benchmark(b, roce.OpRead, 64, wire.MTU1024) }

// BenchmarkSend4K fills the largest packet.
func BenchmarkSend4K(b *testing.B) { benchmark(b, roce.OpSend, 4096, wire.MTU4096) }

// benchmark moves messages from one end to the other in batches of 32, without
// the wire of the simulation.
func benchmark(b *testing.B, op roce.Opcode, n int, mtu wire.MTU) {
	const batch = 32
	l := newLoad(b, op, n, options{MTU: mtu, MaxRd: batch})
	from, to := l.p.ends[0], l.p.ends[1]
	frame := make([]byte, 8192)
	var packet wire.Packet
	move := func(a, z *endpoint) {
		for {
			n := a.qp.NextPacket(1, frame)
			if n == 0 {
				return
			}
			packet.Decode(frame[:n], nil)
			z.qp.HandlePacket(1, &packet)
		}
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	messages := 0
	for b.Loop() {
		if consumesRecv(op) {
			must(b, to.qp.PostRecv(&l.recvs[1]))
		}
		must(b, from.qp.PostSend(&l.sends[0]))
		if messages++; messages%batch == 0 {
			move(to, from) // the credits for what was posted
			move(from, to)
			move(to, from)
			l.poll(from.send)
			l.poll(to.recv)
		}
	}
}
