package roce_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"xroce/roce"
	"xroce/roce/mem"
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
		newSim(t, *simSeed, false).run()
		return
	}
	n := *simSeeds
	if testing.Short() {
		n /= 10
	}
	errors := 0
	for seed := uint64(1); seed <= uint64(n) && !t.Failed(); seed++ {
		s := newSim(t, seed, false)
		s.run()
		errors += s.broken
	}
	// Connections may die of too many faults, but not most of them.
	if errors > n/10 {
		t.Errorf("%d of %d connections used up their retries", errors, n)
	}
}

// Regions of each end in the simulation: data to send and to be read, which
// never changes; where the peer writes; numbers for its atomics; where receives
// and answers go.
const (
	simConst  = 16 << 10
	simWrite  = 8 << 10
	simWords  = 8
	simSlot   = 4 << 10
	simSlots  = 8
	simNumber = simConst + simWrite + guard
	simTarget = simNumber + 8*simWords + guard
	simMemory = simTarget + 2*simSlots*(simSlot+guard)
	simInline = 300
)

// simEnd is the model of one end: what it posted and what must become of it.
type simEnd struct {
	*endpoint
	peer   *simEnd
	model  []byte // what the write area must hold when all is done
	words  [simWords]uint64
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
	dst, src int // READ, atomic: offsets here and, of a READ, at the peer
	n        int
	old      uint64      // atomic: what it must find
	key      *mem.Region // LOCAL_INV: what it invalidates
}

type simMsg struct {
	op   roce.Opcode
	data []byte
	imm  uint32
	key  *mem.Region // SEND_WITH_INV: what it invalidates
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

	unreliable bool // UC: what arrives is whole, but not all arrives
	oneWay     bool // XRC: the first end sends, the second receives
	withSRQ    bool // each end has an SRQ
}

func newSim(t *testing.T, seed uint64, paged bool) *sim {
	t.Helper()
	s := &sim{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 99))}
	o := s.drawOptions()
	o.Paged = paged
	s.p = newRCPairOn(t, o, s.withSRQ)
	for i := range s.ends {
		e := &simEnd{endpoint: s.p.ends[i], model: make([]byte, simWrite)}
		fill(e.buf[:simConst], seed+uint64(i))
		s.ends[i] = e
		if paged {
			e.pages.leave = s.leave(uint64(i))
		}
	}
	s.ends[0].peer, s.ends[1].peer = s.ends[1], s.ends[0]
	rate := [5]float64{}
	for i := range rate {
		if s.rand.IntN(2) == 0 {
			rate[i] = []float64{0.01, 0.05, 0.2}[s.rand.IntN(3)]
		}
	}
	if s.rand.IntN(4) == 0 {
		rate[2] = 0.8 // packets take several paths
	}
	s.p.fault = func(int, int, []byte) fault { return s.draw(&rate) }
	return s
}

// leave takes pages of an end away, while there are faults.
func (s *sim) leave(end uint64) func() int {
	r := rand.New(rand.NewPCG(s.seed, end))
	rate := []float64{0.001, 0.01, 0.1}[r.IntN(3)]
	return func() int {
		if s.quiet || r.Float64() >= rate {
			return 0
		}
		return 1 + r.IntN(5)
	}
}

// drawOptions decides what the queue pairs are.
func (s *sim) drawOptions() options {
	r := s.rand
	o := options{
		MTU: wire.MTU(1 + r.IntN(3)), SQPSN: wire.PSN(r.Uint32()) & 0xffffff,
		RQPSN: wire.PSN(r.Uint32()) & 0xffffff, Timeout: 8, MinRNR: 1 + uint8(r.IntN(4)),
		MaxRd: 1 + uint8(r.IntN(4)), RetryCnt: 7, RNRRetry: 7, Depth: 16, CQDepth: 256,
		Window: []int{1, 2, 7, 32, 0}[r.IntN(5)], Memory: simMemory, Unsignaled: true,
		Inline: simInline, Rights: atomicRights,
	}
	if r.IntN(2) == 0 {
		o.SQPSN = 0xfffff0 // wraps soon
	}
	switch r.IntN(8) {
	case 0:
		o.Type = roce.TypeUC
	case 1:
		o.Type = roce.TypeXRCSend
	default:
		o.Ext = roce.Extensions(r.IntN(8))
		o.Pool = []int{1, 4, 16, 512}[r.IntN(4)]
	}
	s.unreliable, s.oneWay = o.Type == roce.TypeUC, o.Type == roce.TypeXRCSend
	s.withSRQ = !s.oneWay && r.IntN(3) == 0
	return o
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
	s.t.Errorf("seed %d: %s\n\tgo test ./roce -run %s -seed=%d", s.seed,
		fmt.Sprintf(format, args...), s.t.Name(), s.seed)
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
			if s.sends(i) && e.posted < work && s.rand.IntN(3) == 0 {
				s.postSend(e)
			}
			if s.receives(i) && (s.quiet || s.rand.IntN(4) == 0) {
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
	s.checkPool()
}

// sends and receives tell what an end does.
func (s *sim) sends(end int) bool    { return !s.oneWay || end == 0 }
func (s *sim) receives(end int) bool { return !s.oneWay || end == 1 }

// idle reports whether all that was to be posted is done.
func (s *sim) idle(work int) bool {
	for i, e := range s.ends {
		if s.sends(i) && e.posted < work || len(e.sends) > 0 ||
			len(e.arrive) > 0 && !s.unreliable {
			return false
		}
	}
	return true
}
