package gen

import (
	"errors"
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/wire"
)

// A RequesterConfig says how a Requester keeps its connection.
type RequesterConfig struct {
	QPN     uint32     // of this end, to which the peer answers; 24 bits
	Window  int        // most packets under way, 1 to MaxWindow; DefaultWindow for 0
	Reads   int        // most READs, atomics and other requests with a response; 1 for 0
	Timeout clock.Time // how long to wait for an answer; DefaultTimeout for 0
	Retries int        // how often in a row it is waited in vain; 0 for not a second time
	RNR     int        // how often in a row the peer may have no receive; 7 for ever

	// Acked, if not nil, is called for each message that was answered, with the time from
	// when its last packet went first.
	Acked func(latency clock.Time)
}

// Defaults and bounds of a RequesterConfig.
const (
	DefaultWindow  = 64
	MaxWindow      = 4096
	DefaultTimeout = 4096 << 14 // ns: code 14 of a local ACK timeout (IBA 9.7.6.1.3)
	rnrForEver     = 7          // IBA 9.7.5.2.8
)

// RequesterStats are what became of the packets of a Requester.
type RequesterStats struct {
	Packets  uint64 // that were answered
	Messages uint64 // the same
	Bytes    uint64 // of frames of these packets, of READs those that came

	Resent   uint64 // packets that went again
	NAKs     uint64 // PSN sequence errors that the peer told of
	Timeouts uint64
	RNRs     uint64 // the peer had no receive
	Implied  uint64 // responses that are missing, as what came behind them says
	Ghosts   uint64 // answers to what was answered before, or that fit nothing
	CNPs     uint64
}

// Why a Requester goes no further.
var (
	// ErrRetries says that the peer did not answer.
	ErrRetries = errors.New("gen: the peer does not answer")
	// ErrRNR says that the peer had no receive for too long.
	ErrRNR = errors.New("gen: the peer has no receive")
	// ErrNAK says that the peer refused a request. It is wrapped with the syndrome.
	ErrNAK = errors.New("gen: the peer refused")
)

// A request is a packet that was made and is not answered.
type request struct {
	psn      wire.PSN
	count    uint32 // PSNs that it takes: of a READ those of its response
	got      uint32 // of these, those that came
	n        int    // length of the frame
	answered bool   // by a response of its own, not by any acknowledge
	last     bool   // packet of its message
	at       clock.Time
}

// A Requester sends the requests of a Flow to a queue pair of type RC, as a requester does: it
// keeps a window, and what is lost, or refused for now, goes again from there on (IBA 9.7.3 and
// 9.7.5). Mistakes on purpose are those of the first time that a packet goes, but for the key
// and the opcode, so that a peer that recovers from them is seen to. It is no queue pair: it has
// no memory, takes no requests, and looks at no credits.
//
// One caller at a time. Next, Handle and Expire allocate nothing.
type Requester struct {
	flow *Flow
	c    RequesterConfig

	// Requests have numbers: head is the oldest that is kept, cursor the next to go, and next
	// that of the next to be made. What is behind cursor went already and goes again.
	head, cursor, next uint64
	ring               []request
	frames             []byte // of the ring, stride bytes each
	stride             int    // the longest packet, with what it is put into
	extra              uint64 // number of one that goes out of its turn, and 1; 0 for none
	twice              uint8  // what that one is counted as when it goes, as bits
	reads              int    // in the ring, that wait for a response

	timer   clock.Time // since when it is waited for an answer
	paused  clock.Time // until when nothing goes
	retries int
	rnr     int
	stats   RequesterStats
	err     error
}

// NewRequester makes one of a flow of RoCE packets, each of which has to fit one frame with what it
// is put into. The error wraps ErrConfig.
func NewRequester(f Config, c RequesterConfig) (*Requester, error) {
	f.RoCE.AckReq = true
	if f.Wrap.segments() { // what is kept, to go again, is one frame
		one := *f.Wrap
		one.Max, one.Rest = one.One, nil
		f.Wrap = &one
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Reads == 0 {
		c.Reads = 1
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	flow, err := NewFlow(f)
	switch {
	case err != nil:
		return nil, err
	case f.Kind != KindRoCE:
		return nil, wrong("a connection is of RoCE packets")
	case c.QPN > 0xffffff || c.Window < 1 || c.Window > MaxWindow || c.Reads < 1 || c.Retries < 0:
		return nil, wrong("QP 0x%x, a window of %d, %d READs, %d retries", c.QPN, c.Window,
			c.Reads, c.Retries)
	}
	for _, op := range flow.c.RoCE.Opcodes {
		if s := op.Spec(); s.Service != wire.ServiceRC || !s.Is(wire.ClassRequest) {
			return nil, wrong("%s is no request of RC", op)
		}
	}
	for _, v := range f.Vary {
		if v.Field == FieldDestQP {
			return nil, wrong("a connection has one destination QP")
		}
	}
	r := &Requester{
		flow: flow, c: c, ring: make([]request, c.Window),
		frames: make([]byte, c.Window*f.MaxFrame), stride: f.MaxFrame,
	}
	if span := uint64(flow.roce.readSpan()) * uint64(c.Reads); span >= 1<<22 {
		return nil, wrong("%d READs have %d packets, and there are not as many PSNs", c.Reads, span)
	}
	return r, nil
}

// Flow is that whose packets are sent.
func (r *Requester) Flow() *Flow { return r.flow }

// Stats are what became of the packets so far.
func (r *Requester) Stats() RequesterStats { return r.stats }

// Err is why the connection is over, nil while it is not.
func (r *Requester) Err() error { return r.err }

// Idle reports whether all that was made is answered.
func (r *Requester) Idle() bool { return r.head == r.next }

// QPN is the number of this end.
func (r *Requester) QPN() uint32 { return r.c.QPN }

// Again reports whether Next would send a packet that went before.
func (r *Requester) Again(now clock.Time) bool {
	return r.err == nil && now >= r.paused && (r.extra > r.head || r.cursor < r.next)
}

// Next writes the next packet, if one may go, and returns its length. That is 0 when none may,
// and when one was made that is missing on purpose. wall is the time for its signature. frame
// must have MaxFrame bytes.
func (r *Requester) Next(frame []byte, now clock.Time, wall int64) int {
	switch {
	case r.err != nil || now < r.paused:
		return 0
	case r.extra > r.head:
		n := r.extra - 1
		r.extra = 0
		r.flow.inject(r.twice)
		r.twice = 0
		return copy(frame, r.frame(n))
	case r.cursor < r.next:
		n := r.cursor
		r.cursor++
		r.stats.Resent++
		return copy(frame, r.frame(n))
	}
	if !r.room() {
		return 0
	}
	n := r.next
	set := r.make(now, wall)
	has := func(k FaultKind) bool { return set>>k&1 != 0 }
	switch {
	case has(FaultGap):
		return 0
	case has(FaultDuplicate):
		r.extra, r.twice = n+1, 1<<FaultDuplicate
	case has(FaultSwap):
		r.extra, r.twice = n+1, 0
		r.makeWith(now, wall, 0)
		n++
	}
	size := copy(frame, r.frame(n))
	if has(FaultBadICRC) {
		frame[size-1] ^= 0xff
	}
	return size
}

// at is the request of a number.
func (r *Requester) at(n uint64) *request { return &r.ring[n%uint64(len(r.ring))] }

// frame is the packet of a number.
func (r *Requester) frame(n uint64) []byte {
	i := int(n%uint64(len(r.ring))) * r.stride
	return r.frames[i : i+r.at(n).n]
}

// room reports whether another packet may go.
func (r *Requester) room() bool {
	if r.next-r.head >= uint64(len(r.ring)) {
		return false
	}
	p := r.flow.roce
	return r.reads < r.c.Reads || !hasResponse(p.fields.Opcodes[p.i].Spec())
}

// hasResponse reports whether a request is answered by a response of its own.
func hasResponse(s *wire.OpcodeSpec) bool { return s.Response != wire.RCAck }

// make makes the next request, and returns its mistakes. They are counted, but for a duplicate,
// which is one when it goes: an answer may come before, or a NAK from which on all goes again.
func (r *Requester) make(now clock.Time, wall int64) (set uint8) {
	f := r.flow
	if len(f.faults.rules) > 0 {
		set = f.faults.of(f.seq)
	}
	set = f.possible(set)
	if set>>FaultSwap&1 != 0 && !r.roomBehind() {
		set &^= 1 << FaultSwap
	}
	f.inject(set &^ (1 << FaultDuplicate))
	r.makeWith(now, wall, set)
	return set
}

// roomBehind reports whether there will be room for a packet behind the next one.
func (r *Requester) roomBehind() bool {
	p := r.flow.roce
	ops := p.fields.Opcodes
	reads := r.reads
	if hasResponse(ops[p.i].Spec()) {
		reads++
	}
	behind := ops[(p.i+1)%len(ops)].Spec()
	return r.next+1-r.head < uint64(len(r.ring)) && (reads < r.c.Reads || !hasResponse(behind))
}

// makeWith makes the next request with mistakes. What is wrong on the way alone is not in what is
// kept.
func (r *Requester) makeWith(now clock.Time, wall int64, set uint8) {
	f, p := r.flow, r.flow.roce
	q, spec := r.at(r.next), p.fields.Opcodes[p.i].Spec()
	// Half a window without an answer, and the rest of it is there when one comes.
	p.ackNow = r.next%uint64((len(r.ring)+1)/2) == 0
	i := int(r.next%uint64(len(r.ring))) * r.stride
	*q = request{
		psn: p.psn, answered: hasResponse(spec), last: spec.Is(wire.ClassLast), at: now,
	}
	q.n = f.make(r.frames[i:i+r.stride], wall, Data, set&^(1<<FaultBadICRC))
	q.count = uint32(p.psn.Diff(q.psn))
	if q.answered {
		r.reads++
	}
	if r.head == r.next {
		r.timer = now
	}
	r.next++
	r.cursor = r.next
}

// Deadline is when Expire has something to do, or Next again; ok is false when only an answer
// changes something.
func (r *Requester) Deadline(now clock.Time) (at clock.Time, ok bool) {
	switch {
	case r.err != nil || r.Idle():
		return 0, false
	case r.paused > now:
		return r.paused, true
	}
	return max(r.timer, r.paused) + r.c.Timeout, true
}

// Expire tells that it is so late.
func (r *Requester) Expire(now clock.Time) {
	at, ok := r.Deadline(now)
	if !ok || now < at || now < r.paused {
		return
	}
	r.stats.Timeouts++
	r.timer = now
	if r.retries++; r.retries > r.c.Retries {
		r.err = fmt.Errorf("%w (PSN 0x%06x, %d times)", ErrRetries, uint32(r.at(r.head).psn),
			r.retries)
		return
	}
	r.again()
}

// again has all that is kept go once more.
func (r *Requester) again() {
	r.cursor, r.extra = r.head, 0
	for n := r.head; n < r.next; n++ {
		r.at(n).got = 0
	}
}
