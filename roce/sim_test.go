package roce_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

var (
	simSeed  = flag.Uint64("seed", 0, "run only this seed of TestSim")
	simSeeds = flag.Int("seeds", 2000, "number of seeds of TestSim")
)

// TestSim runs two queue pairs that post random work over a wire with random
// faults. When the faults stop, everything must finish. A seed is a whole run.
func TestSim(t *testing.T) {
	if *simSeed != 0 {
		newSim(t, *simSeed).run()
		return
	}
	n := *simSeeds
	if testing.Short() {
		n /= 10
	}
	errors := 0
	for seed := uint64(1); seed <= uint64(n) && !t.Failed(); seed++ {
		s := newSim(t, seed)
		s.run()
		errors += s.broken
	}
	// Connections may die of too many faults, but not most of them.
	if errors > n/10 {
		t.Errorf("%d of %d connections used up their retries", errors, n)
	}
}

// Regions of each end in the simulation: data to send and to be read, which
// never changes; where the peer writes; where receives and READs go.
const (
	simConst  = 16 << 10
	simWrite  = 8 << 10
	simSlot   = 4 << 10
	simSlots  = 8
	simTarget = simConst + simWrite + guard
	simMemory = simTarget + 2*simSlots*(simSlot+guard)
)

// simEnd is the model of one end: what it posted and what must become of it.
type simEnd struct {
	*endpoint
	peer   *simEnd
	model  []byte         // what the write area must hold when all is done
	sends  []simOp        // not completed yet
	arrive []simMsg       // messages that must complete receives here, in order
	recvs  []simRecv      // posted receives, in order
	posted int            // send requests
	status roce.Status    // of the first failure
	before *roce.Snapshot // of the event before
}

type simOp struct {
	id       uint64
	op       roce.Opcode
	signaled bool
	dst, src int // READ: offsets here and at the peer
	n        int
}

type simMsg struct {
	op   roce.Opcode
	data []byte
	imm  uint32
}

type simRecv struct {
	id  uint64
	off int
}

type sim struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	p      *pair
	ends   [2]*simEnd
	slots  [2]int
	quiet  bool
	broken int // 1 when the connection died
}

func newSim(t *testing.T, seed uint64) *sim {
	t.Helper()
	s := &sim{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 99))}
	r := s.rand
	o := options{
		MTU: wire.MTU(1 + r.IntN(3)), SQPSN: wire.PSN(r.Uint32()) & 0xffffff,
		RQPSN: wire.PSN(r.Uint32()) & 0xffffff, Timeout: 8, MinRNR: 1 + uint8(r.IntN(4)),
		MaxRd: 1 + uint8(r.IntN(4)), RetryCnt: 7, RNRRetry: 7, Depth: 16, CQDepth: 256,
		Window: []int{1, 2, 7, 32, 0}[r.IntN(5)], Memory: simMemory, Unsignaled: true,
	}
	if r.IntN(2) == 0 {
		o.SQPSN = 0xfffff0 // wraps soon
	}
	s.p = newRCPair(t, o)
	for i := range s.ends {
		e := &simEnd{endpoint: s.p.ends[i], model: make([]byte, simWrite)}
		fill(e.buf[:simConst], seed+uint64(i))
		s.ends[i] = e
	}
	s.ends[0].peer, s.ends[1].peer = s.ends[1], s.ends[0]
	rate := [5]float64{}
	for i := range rate {
		if r.IntN(2) == 0 {
			rate[i] = []float64{0.01, 0.05, 0.2}[r.IntN(3)]
		}
	}
	s.p.fault = func(int, int, []byte) fault { return s.draw(&rate) }
	return s
}

// draw decides what happens to a frame.
func (s *sim) draw(rate *[5]float64) (f fault) {
	if s.quiet {
		return f
	}
	f.Drop = s.rand.Float64() < rate[0]
	f.Dup = s.rand.Float64() < rate[1]
	if s.rand.Float64() < rate[2] {
		f.Delay = roce.Time(s.rand.IntN(5000))
	}
	if s.rand.Float64() < rate[3] {
		f.Delay = roce.Time(s.rand.IntN(3_000_000))
	}
	if s.rand.Float64() < rate[4] {
		f.Flip = 1 + s.rand.IntN(1<<16)
	}
	return f
}

// failf reports a failure with the command that repeats it.
func (s *sim) failf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d: %s\n\tgo test ./roce -run TestSim -seed=%d", s.seed,
		fmt.Sprintf(format, args...), s.seed)
}

// run is the life of one seed: faults with new work, then quiet.
func (s *sim) run() {
	s.t.Helper()
	const work, bound = 40, 200_000
	for events := 0; !s.t.Failed(); events++ {
		if events > bound {
			s.failf("does not end: %s; %s", s.ends[0].qp.Snapshot(), s.ends[1].qp.Snapshot())
		}
		for i, e := range s.ends {
			if e.posted < work && s.rand.IntN(3) == 0 {
				s.postSend(e)
			}
			if s.quiet || s.rand.IntN(4) == 0 {
				s.postRecv(i, e)
			}
		}
		if events == 400 {
			s.quiet = true
		}
		more := s.p.step()
		s.check()
		if !more && s.quiet && (s.broken != 0 || s.idle(work)) {
			break
		}
	}
	if s.broken == 0 && !s.t.Failed() {
		s.checkMemory()
	}
}

// idle tells whether all that was to be posted is done.
func (s *sim) idle(work int) bool {
	for _, e := range s.ends {
		if e.posted < work || len(e.sends) > 0 || len(e.arrive) > 0 {
			return false
		}
	}
	return true
}

// postSend posts one random request, when there is room for it.
func (s *sim) postSend(e *simEnd) {
	r := s.rand
	n := r.IntN(simSlot + 1)
	if r.IntN(3) == 0 {
		n = sizesFor(s.p.o.MTU.Bytes())[r.IntN(8)]
	}
	src := r.IntN(simConst - n + 1)
	op := simOp{
		id: uint64(e.posted), op: allOps[r.IntN(len(allOps))], n: n,
		signaled: r.IntN(4) != 0,
	}
	wr := roce.SendWR{WRID: op.id, Opcode: op.op, Imm: r.Uint32(), RKey: e.peer.region.RKey()}
	if op.signaled {
		wr.Flags |= roce.SendSignaled
	}
	if r.IntN(4) == 0 {
		wr.Flags |= roce.SendFence
	}
	wr.SGList = split(e.sge(src, n))
	data := e.buf[src : src+n]
	at := r.IntN(simWrite - n + 1)
	switch op.op {
	case roce.OpRead:
		op.dst, op.src = simTarget+(simSlots+e.posted%simSlots)*(simSlot+guard), src
		wr.SGList = split(e.sge(op.dst, n))
		wr.RemoteAddr = e.peer.region.Addr() + uint64(src)
	case roce.OpWrite, roce.OpWriteImm:
		wr.RemoteAddr = e.peer.region.Addr() + simConst + uint64(at)
	}
	if len(e.sends) >= simSlots || e.qp.State() == roce.StateErr || e.qp.PostSend(&wr) != nil {
		return
	}
	e.posted++
	e.sends = append(e.sends, op)
	if op.op == roce.OpWrite || op.op == roce.OpWriteImm {
		copy(e.peer.model[at:], data)
	}
	if consumesRecv(op.op) {
		m := simMsg{op: op.op, data: data}
		if hasImm(op.op) {
			m.imm = wr.Imm
		}
		e.peer.arrive = append(e.peer.arrive, m)
	}
}

// postRecv posts a receive to the next slot, when there is one free.
func (s *sim) postRecv(i int, e *simEnd) {
	if len(e.recvs) >= simSlots || e.qp.State() == roce.StateErr {
		return
	}
	off := simTarget + s.slots[i]%simSlots*(simSlot+guard)
	rv := simRecv{uint64(1000 + s.slots[i]), off}
	must(s.t, e.qp.PostRecv(&roce.RecvWR{WRID: rv.id, SGList: split(e.sge(off, simSlot))}))
	e.recvs = append(e.recvs, rv)
	s.slots[i]++
}

// check holds the invariants after each event.
func (s *sim) check() {
	s.t.Helper()
	for i, e := range s.ends {
		for _, wc := range drain(s.t, e.send) {
			s.sendDone(i, e, wc)
		}
		for _, wc := range drain(s.t, e.recv) {
			s.recvDone(i, e, wc)
		}
		// What is gone without a completion must have been unsignaled.
		for out := int(e.qp.Snapshot().SendPosted); len(e.sends) > out && e.status == 0; {
			if e.sends[0].signaled {
				s.failf("end %d: no completion for %+v", i, e.sends[0])
			}
			s.sendRetired(i, e, e.sends[0])
			e.sends = e.sends[1:]
		}
		s.checkWindows(i, e)
	}
}

// sendDone takes a send completion: requests complete in order, each once;
// only unsignaled ones in silence, and only as success.
func (s *sim) sendDone(i int, e *simEnd, wc roce.Completion) {
	s.t.Helper()
	failed := wc.Status != roce.StatusSuccess
	for len(e.sends) > 0 && e.sends[0].id != wc.WRID && !e.sends[0].signaled {
		s.sendRetired(i, e, e.sends[0])
		e.sends = e.sends[1:]
	}
	if len(e.sends) == 0 || e.sends[0].id != wc.WRID {
		s.failf("end %d: completion %+v out of order, outstanding %+v", i, wc, e.sends)
		return
	}
	op := e.sends[0]
	e.sends = e.sends[1:]
	switch {
	case failed && e.status == 0:
		// The end of the connection: a lost cause here, or the peer's end.
		e.status, s.broken = wc.Status, 1
		if wc.Status != roce.StatusRetryExcErr {
			s.failf("end %d: %+v", i, wc)
		}
	case failed:
		if wc.Status != roce.StatusWRFlushErr {
			s.failf("end %d: %+v after a failure", i, wc)
		}
	case e.status != 0:
		s.failf("end %d: %+v after a failure", i, wc)
	case !op.signaled:
		s.failf("end %d: completion of unsignaled request %+v", i, wc)
	default:
		if wc.Opcode != wcOpcode[op.op] || op.op == roce.OpRead && wc.ByteLen != uint32(op.n) {
			s.failf("end %d: %+v for %+v", i, wc, op)
		}
		s.sendRetired(i, e, op)
	}
}

// sendRetired checks what a successful request left here.
func (s *sim) sendRetired(i int, e *simEnd, op simOp) {
	s.t.Helper()
	if op.op != roce.OpRead || e.status != 0 {
		return
	}
	if !bytes.Equal(e.buf[op.dst:op.dst+op.n], e.peer.buf[op.src:op.src+op.n]) {
		s.failf("end %d: READ %d of %d bytes brought other data", i, op.id, op.n)
	}
}

// recvDone takes a receive completion: messages arrive in order, each once.
func (s *sim) recvDone(i int, e *simEnd, wc roce.Completion) {
	s.t.Helper()
	if len(e.recvs) == 0 || e.recvs[0].id != wc.WRID {
		s.failf("end %d: receive %+v, posted %+v", i, wc, e.recvs)
		return
	}
	rv := e.recvs[0]
	e.recvs = e.recvs[1:]
	if wc.Status != roce.StatusSuccess {
		if wc.Status != roce.StatusWRFlushErr || e.qp.State() != roce.StateErr {
			s.failf("end %d: receive %+v", i, wc)
		}
		return
	}
	if len(e.arrive) == 0 {
		s.failf("end %d: receive %+v of nothing", i, wc)
		return
	}
	m := e.arrive[0]
	e.arrive = e.arrive[1:]
	want := roce.Completion{
		WRID: rv.id, Opcode: roce.WCRecv, QPN: e.qp.Num(), Time: wc.Time,
		ByteLen: uint32(len(m.data)),
	}
	if m.op == roce.OpWriteImm {
		want.Opcode = roce.WCRecvRDMAWithImm
	} else if !bytes.Equal(e.buf[rv.off:rv.off+len(m.data)], m.data) {
		s.failf("end %d: message to receive %d has other data", i, rv.id)
	}
	if hasImm(m.op) {
		want.Flags, want.Imm = roce.WCWithImm, m.imm
	}
	if wc != want {
		s.failf("end %d: receive %+v, want %+v", i, wc, want)
	}
}

// checkWindows compares the PSNs of both ends and the bounds of all queues.
func (s *sim) checkWindows(i int, e *simEnd) {
	s.t.Helper()
	a, b := e.qp.Snapshot(), e.peer.qp.Snapshot()
	if a.State != roce.StateRTS || b.State != roce.StateRTS {
		return
	}
	window := or(s.p.o.Window, 256)
	longest := simSlot / s.p.o.MTU.Bytes()
	top := a.TopPSN.Diff(a.UnackedPSN)
	expected := b.ExpectedPSN.Diff(a.UnackedPSN)
	next := a.NextPSN.Diff(a.UnackedPSN)
	switch {
	case top < 0 || int(top) > window+longest:
		s.failf("end %d: %d PSNs outstanding, window %d", i, top, window)
	case next < 0 || next > top:
		s.failf("end %d: next PSN is not in the window: %s", i, a)
	case expected < 0 || expected > top:
		s.failf("end %d: peer expects what was never sent or is done: %s; %s", i, a, b)
	case a.Outstanding > uint32(s.p.o.MaxRd):
		s.failf("end %d: %d READs outstanding", i, a.Outstanding)
	case a.Answers > 2*int(s.p.o.MaxRd)+1:
		s.failf("end %d: %d answers wait", i, a.Answers)
	case e.before != nil && a.UnackedPSN.Before(e.before.UnackedPSN):
		s.failf("end %d: acknowledged PSN went back: %s", i, a)
	case e.before != nil && a.ExpectedPSN.Before(e.before.ExpectedPSN):
		s.failf("end %d: expected PSN went back: %s", i, a)
	}
	e.before = &a
}

// checkMemory compares all memory with the model at the end.
func (s *sim) checkMemory() {
	s.t.Helper()
	for i, e := range s.ends {
		want := make([]byte, simConst)
		fill(want, s.seed+uint64(i))
		switch {
		case !bytes.Equal(e.buf[:simConst], want):
			s.failf("end %d: data to send changed", i)
		case !bytes.Equal(e.buf[simConst:simConst+simWrite], e.model):
			s.failf("end %d: written data differs from the model", i)
		}
		for slot := range 2 * simSlots {
			at := simTarget + slot*(simSlot+guard) + simSlot
			if !bytes.Equal(e.buf[at:at+guard], make([]byte, guard)) {
				s.failf("end %d: bytes behind slot %d were touched", i, slot)
			}
		}
	}
}
