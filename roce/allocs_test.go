package roce_test

import (
	"slices"
	"testing"

	"xroce/roce"
	"xroce/roce/cc"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A load moves batches of one operation both ways over a pair, or one way where the
// type has only one, and allocates nothing itself.
type load struct {
	p     *pair
	op    roce.Opcode
	ends  []int // that post
	sends [2]roce.SendWR
	recvs [2]roce.RecvWR
	done  [64]roce.Completion
}

func newLoad(tb testing.TB, op roce.Opcode, n int, o options) *load {
	tb.Helper()
	l := &load{p: newRCPair(tb, o), op: op, ends: []int{0, 1}}
	if o.Type == roce.TypeXRCSend {
		l.ends = l.ends[:1]
	}
	for i, e := range l.p.ends {
		peer := l.p.ends[1-i]
		l.sends[i] = roce.SendWR{
			Opcode: op, SGList: e.sge(0, n), RemoteSRQN: srqNum, Flush: wire.FlushGlobal,
			RemoteAddr: peer.region.Addr() + 1<<15, RKey: peer.region.RKey(), CompareAdd: 1,
		}
		switch {
		case op == roce.OpFlush:
			l.sends[i].SGList = nil
		case o.Inline > 0:
			l.sends[i].SGList = nil
			l.sends[i].Inline, l.sends[i].Flags = e.buf[:n], roce.SendInline
		}
		l.recvs[i] = roce.RecvWR{SGList: e.sge(1<<15, n)}
	}
	return l
}

// batch posts n messages at the ends, lets all of it happen and polls.
func (l *load) batch(n int) {
	for range n {
		for _, i := range l.ends {
			e, peer := l.p.ends[i], l.p.ends[1-i]
			if consumesRecv(l.op) {
				must(l.p.tb, peer.postRecv(&l.recvs[1-i]))
			}
			must(l.p.tb, e.qp.PostSend(&l.sends[i]))
		}
	}
	l.p.run()
	for _, i := range l.ends {
		got := l.poll(l.p.ends[i].send)
		if consumesRecv(l.op) {
			got += l.poll(l.p.ends[1-i].recv) - n
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
// are lost, doubled and overtaken, nor when receives are late; with no operation,
// type, or extension.
func TestNoAllocations(t *testing.T) {
	words := []roce.Opcode{roce.OpFetchAdd, roce.OpCmpSwap, roce.OpAtomicWrite, roce.OpFlush}
	for name, tt := range map[string]struct {
		o     options
		ops   []roce.Opcode
		small bool // eight bytes
	}{
		"RC":       {options{}, allOps, false},
		"RC words": {options{}, words, true},
		"inline":   {options{Inline: 1000}, simUCOps, false},
		"inline receive": {
			options{InlineRecv: 64}, append(words[:2:2], roce.OpSend, roce.OpRead), true,
		},
		"inline receive, XRC": {options{InlineRecv: 64, Type: roce.TypeXRCSend}, words[:2], true},
		"inline receive, selective": {
			options{InlineRecv: 64, Ext: roce.ExtSelectiveRepeat},
			append(words[:2:2], roce.OpSend), true,
		},
		"XRC":              {options{Type: roce.TypeXRCSend}, allOps, false},
		"XRC atomics":      {options{Type: roce.TypeXRCSend}, words[:2], true},
		"selective":        {options{Ext: roce.ExtSelectiveRepeat}, allOps, false},
		"selective words":  {options{Ext: roce.ExtSelectiveRepeat}, words, true},
		"reorder":          {options{Ext: roce.ExtReorderWindow}, allOps, false},
		"both, small pool": {options{Ext: 3, Pool: 3}, allOps, false},
		"DCQCN":            {options{Congestion: dcqcn}, allOps, false},
		"Swift": {
			options{Congestion: configured(cc.AlgorithmSwift)}, []roce.Opcode{roce.OpSend}, false,
		},
	} {
		for _, lossy := range []bool{false, true} {
			for _, op := range tt.ops {
				o, n := tt.o, 3*defaults.MTU.Bytes()+1
				o.RetryCnt, o.Timeout, o.Rights = 7, 4, atomicRights
				if tt.small {
					n = 8
				}
				l := newLoad(t, op, n, o)
				if lossy {
					l.p.fault = everyFault
				}
				if got := l.allocations(); got != 0 {
					t.Errorf("%s, %s, lossy %t: %v allocations", name, op, lossy, got)
				}
				if resent := l.p.ends[0].count[counter.Retransmits]; lossy && resent == 0 {
					t.Errorf("%s, %s: nothing was sent again", name, op)
				}
			}
		}
	}
}

// everyFault loses, doubles and delays frames, without a period that the repetition
// of a whole window could fall in with.
func everyFault(_, nth int, _ []byte) fault {
	h := uint64(nth) * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	nth = int(h >> 33)
	f := fault{Drop: nth%11 == 3, Dup: nth%13 == 5}
	if nth%7 == 2 {
		f.Delay = 5 * roce.Microsecond
	}
	return f
}

// allocations is how many there are in a batch.
func (l *load) allocations() float64 {
	// The wire of the test is to have all buffers it will ever need.
	l.p.air, l.p.spare = make([]flight, 0, 1<<12), make([][]byte, 0, 1<<12)
	for range 1 << 10 {
		l.p.spare = append(l.p.spare, make([]byte, 1<<9))
	}
	for range 4 {
		l.batch(16)
	}
	return testing.AllocsPerRun(20, func() { l.batch(16) })
}

// TestNoAllocationsUnreliable: UC, datagrams and raw frames, with and without a
// receive at the other end.
func TestNoAllocationsUnreliable(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUC, roce.TypeUD, roce.TypeGSI, roce.TypeRawPacket} {
		s := newScript(t, options{Type: typ})
		wr := roce.SendWR{
			Opcode: roce.OpSend, SGList: s.sge(0, 300), RemoteQPN: qpnB, AH: s.handle(),
		}
		rv := roce.RecvWR{SGList: s.sge(1024, 1024)}
		var p wire.Packet
		var in [2][]byte
		qkey := uint32(testQKey)
		if typ == roce.TypeGSI {
			qkey = roce.GSIQKey
		}
		for i := range in {
			frame := datagram(wire.UDSendOnly, qkey, make([]byte, 100))
			if typ == roce.TypeUC {
				frame = s.uc(wire.RCSendOnly, uint32(i))
			}
			frame.DestQP = qpnA
			in[i] = frame.Frame(&s.path)
		}
		var done [4]roce.Completion
		got := testing.AllocsPerRun(100, func() {
			must(t, s.qp.PostSend(&wr))
			for s.qp.NextPacket(1, s.frame) != 0 {
			}
			must(t, s.qp.PostRecv(&rv))
			for _, frame := range in { // the second finds no receive
				if typ == roce.TypeRawPacket {
					must(t, s.qp.HandleFrame(1, frame, nil))
				} else if p.Decode(frame, nil) == wire.OK {
					s.qp.HandlePacket(1, &p)
				}
			}
			for _, cq := range []*roce.CQ{s.send, s.recv} {
				if n, err := cq.Poll(done[:]); n != 1 || err != nil || done[0].Status != 0 {
					t.Fatalf("%s: %d completions, %+v", typ, n, done[0])
				}
			}
		})
		if got != 0 {
			t.Errorf("%s: %v allocations", typ, got)
		}
	}
}

// BenchmarkSend64 is one SEND of 64 bytes with its acknowledge: post, packet out,
// packet in, completion, at both ends on one core.
func BenchmarkSend64(b *testing.B) { benchmark(b, roce.OpSend, 64, wire.MTU1024) }

// BenchmarkSends64 is the same, posted as lists.
func BenchmarkSends64(b *testing.B) {
	benchmarkWith(b, roce.OpSend, 64, options{MTU: wire.MTU1024}, true)
}

// BenchmarkSend64InlineRecv is the same with the payload in the completion.
func BenchmarkSend64InlineRecv(b *testing.B) {
	o := options{MTU: wire.MTU1024, InlineRecv: roce.MaxInlineRecv}
	benchmarkWith(b, roce.OpSend, 64, o, false)
}

// BenchmarkRead64InlineRecv is that for READ.
func BenchmarkRead64InlineRecv(b *testing.B) {
	o := options{MTU: wire.MTU1024, InlineRecv: roce.MaxInlineRecv}
	benchmarkWith(b, roce.OpRead, 64, o, false)
}

// BenchmarkWrite64 is the same for WRITE.
func BenchmarkWrite64(b *testing.B) { benchmark(b, roce.OpWrite, 64, wire.MTU1024) }

// BenchmarkRead64 is the same for READ.
func BenchmarkRead64(b *testing.B) { benchmark(b, roce.OpRead, 64, wire.MTU1024) }

// BenchmarkSend4K fills the largest packet.
func BenchmarkSend4K(b *testing.B) { benchmark(b, roce.OpSend, 4096, wire.MTU4096) }

// benchmark moves messages from one end to the other in batches of 32, without
// the wire of the simulation.
func benchmark(b *testing.B, op roce.Opcode, n int, mtu wire.MTU) {
	benchmarkWith(b, op, n, options{MTU: mtu}, false)
}

func benchmarkWith(b *testing.B, op roce.Opcode, n int, o options, lists bool) {
	const batch = 32
	o.MaxRd = batch
	l := newLoad(b, op, n, o)
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
	sends := slices.Repeat(l.sends[:1], batch)
	recvs := slices.Repeat(l.recvs[1:], batch)
	post := func() {
		if lists {
			_, err := to.qp.PostRecvs(recvs)
			must(b, err)
			_, err = from.qp.PostSends(sends)
			must(b, err)
			return
		}
		for i := range sends {
			if consumesRecv(op) {
				must(b, to.qp.PostRecv(&recvs[i]))
			}
			must(b, from.qp.PostSend(&sends[i]))
		}
	}
	for messages := 0; b.Loop(); messages++ {
		if messages%batch == 0 {
			post()
			move(to, from) // the credits for what was posted
			move(from, to)
			move(to, from)
			l.poll(from.send)
			l.poll(to.recv)
		}
	}
}
