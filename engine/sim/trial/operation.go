package trial

import (
	"bytes"

	"xroce/roce"
)

// The number of operations, of those that derivePlain chooses from, which come
// first, and of those that widen does.
const (
	numOps      = 15
	numPlainOps = 6
	numWideOps  = 13
)

// An operation is a row of the table of what a requester may ask for.
type operation struct {
	name     string
	code     roce.Opcode
	done     roce.WCOpcode // of the completion here
	arrival  roce.WCOpcode // of the completion at the peer, when it has one
	consumes bool          // it takes a receive at the peer
	imm      bool
	remote   bool // it names memory of the peer
	gets     bool // data comes from the peer
	counted  bool // it counts against MAX_QP_RD_ATOMIC
	fixed    int  // bytes that it always has, 0 for as many as one likes
	word     bool // it is about a word that all connections to the peer share
	bare     bool // it has no data of its own
	own      bool // it is done here, and sends nothing
	inlines  bool // it may take its data inline

	unreliable bool // UC has it too
	onlyRC     bool // XRC does not

	// claim takes memory here and at the peer for a request whose size is set,
	// and reports whether there is any.
	claim func(e *endpoint, o *op) bool
	// retired checks what a request that is complete left behind, and gives
	// back its memory. It returns what is wrong, "" when nothing is.
	retired func(e *endpoint, o *op) string
	// arrived checks what the message left in the receive and elsewhere, at
	// the end that received it.
	arrived func(e *endpoint, o *op, r *receive) string
}

// operations is the table. A new operation is a new row.
var operations = [numOps]operation{
	{
		name: "SEND", code: roce.OpSend, done: roce.WCSend, arrival: roce.WCRecv, consumes: true,
		inlines: true, unreliable: true,
		claim: claimSource, retired: retireSend, arrived: arriveSend,
	},
	{
		name: "SEND_IMM", code: roce.OpSendImm, done: roce.WCSend, arrival: roce.WCRecv,
		consumes: true, imm: true, inlines: true, unreliable: true,
		claim: claimSource, retired: retireSend, arrived: arriveSend,
	},
	{
		name: "WRITE", code: roce.OpWrite, done: roce.WCWrite, remote: true,
		inlines: true, unreliable: true,
		claim: claimWrite, retired: retireWrite,
	},
	{
		name: "WRITE_IMM", code: roce.OpWriteImm, done: roce.WCWrite,
		arrival: roce.WCRecvRDMAWithImm, consumes: true, imm: true, remote: true,
		inlines: true, unreliable: true,
		claim: claimWriteImm, retired: retireWriteImm, arrived: arriveWriteImm,
	},
	{
		name: "READ", code: roce.OpRead, done: roce.WCRead, remote: true, gets: true,
		counted: true, claim: claimRead, retired: retireRead,
	},
	{
		// A READ of what was written just before: it must see it.
		name: "READ_BACK", code: roce.OpRead, done: roce.WCRead, remote: true, gets: true,
		counted: true, claim: claimReadBack, retired: retireRead,
	},
	{
		name: "FETCH_ADD", code: roce.OpFetchAdd, done: roce.WCFetchAdd, remote: true, gets: true,
		counted: true, fixed: 8, word: true, claim: claimAtomic, retired: retireWord,
	},
	{
		name: "CMP_SWP", code: roce.OpCmpSwap, done: roce.WCCompSwap, remote: true, gets: true,
		counted: true, fixed: 8, word: true, claim: claimAtomic, retired: retireWord,
	},
	{
		name: "READ_WORD", code: roce.OpRead, done: roce.WCRead, remote: true, gets: true,
		counted: true, fixed: 8, word: true, claim: claimAtomic, retired: retireWord,
	},
	{
		name: "ATOMIC_WRITE", code: roce.OpAtomicWrite, done: roce.WCAtomicWrite, remote: true,
		counted: true, fixed: 8, inlines: true, onlyRC: true,
		claim: claimWrite, retired: retireWrite,
	},
	{
		name: "FLUSH", code: roce.OpFlush, done: roce.WCFlush, remote: true, bare: true,
		counted: true, onlyRC: true, claim: claimFlush, retired: retireFlush,
	},
	{
		name: "SEND_INV", code: roce.OpSendInv, done: roce.WCSend, arrival: roce.WCRecv,
		consumes: true, inlines: true,
		claim: claimInvalidate, retired: retireSend, arrived: arriveInvalidate,
	},
	{
		// A WRITE to the region whose key SEND_INV takes out of use.
		name: "WRITE_TICKET", code: roce.OpWrite, done: roce.WCWrite, remote: true,
		inlines: true, claim: claimTicket, retired: retireWrite,
	},
	{
		// These two are posted by lend, not drawn.
		name: "BIND_MW", code: roce.OpBindMW, done: roce.WCBindMW, bare: true, own: true,
		retired: retireBind,
	},
	{
		name: "LOCAL_INV", code: roce.OpLocalInv, done: roce.WCLocalInv, bare: true, own: true,
		retired: retireRevoke,
	},
}

// OpName is the name of a row of Stats.Ops.
func OpName(row int) string { return operations[row].name }

// An op is a request with what the model knows of it.
type op struct {
	*operation
	id         uint64 // also its WRID
	size       int
	key        uint64 // of its payload
	value      uint32 // immediate data
	signaled   bool
	bad        badness
	local      *slot // source or target
	localAt    int
	distant    *slot // of the peer
	distantAt  int
	want       []byte   // what a READ must bring
	at         *wordUse // of an operation on a word
	key32      uint32   // that it takes out of use at the peer, or here
	lent       uint32   // the key of the ticket that it names
	fence      bool
	inline     bool
	complete   bool // with success, here
	received   bool // at the peer
	missed     bool // by the peer, on a UC: later ones came before it
	afterwards bool // it is behind a request that must fail
}

// row is its place in the table.
func (o *op) row() int {
	for i := range operations {
		if &operations[i] == o.operation {
			return i
		}
	}
	return 0
}

// claimSource puts the payload in a slot, and reports whether one was free.
func claimSource(e *endpoint, o *op) bool {
	if o.local = e.arena.pick(poolSource, e.w.rng.IntN(8)); o.local == nil {
		return false
	}
	o.local.taken = true
	o.localAt = e.w.rng.IntN(o.local.n - o.size + 1)
	e.arena.set(o.local, o.localAt, o.size, o.key)
	return true
}

// releaseSource gives the slot back; nobody may have written to it.
func releaseSource(e *endpoint, o *op) string {
	wrong := e.arena.differs(o.local)
	o.local.taken = false
	return wrong
}

func retireSend(e *endpoint, o *op) string { return releaseSource(e, o) }

// arriveSend compares the receive with the message, and the rest of its slot.
func arriveSend(e *endpoint, o *op, r *receive) string {
	fill(r.arena.want[r.slot.off+r.at:][:o.size], o.key)
	return r.arena.differs(r.slot)
}

// claimDistant takes a place for the data in a slot of the peer.
func claimDistant(e *endpoint, o *op, s *slot) {
	o.distant, o.distantAt = s, e.w.rng.IntN(s.n-o.size+1)
	if o.fixed != 0 {
		// The arena itself begins at a multiple of eight.
		o.distantAt = (8-s.off%8)%8 + o.distantAt/16*8
	}
	s.claims = append(s.claims, o)
}

func claimWrite(e *endpoint, o *op) bool {
	pool := e.peer.arena.pools[poolWritable]
	s := pool[e.w.rng.IntN(len(pool))]
	if s.locked || !claimSource(e, o) {
		return false
	}
	claimDistant(e, o, s)
	return true
}

// retireWrite applies the WRITE to the model. When it was the last one of its
// slot, memory must be the model.
func retireWrite(e *endpoint, o *op) string {
	wrong := releaseSource(e, o)
	peer := e.peer.arena
	fill(peer.want[o.distant.off+o.distantAt:][:o.size], o.key)
	o.distant.unclaim(o)
	if wrong == "" && len(o.distant.claims) == 0 {
		wrong = e.peer.rested(o.distant)
	}
	return wrong
}

// claimWriteImm takes a slot for itself, and reports whether one was free: the message is
// looked at when it arrives, and nothing else may have been written over it by then.
func claimWriteImm(e *endpoint, o *op) bool {
	if e.unreliable() {
		return claimWrite(e, o) // it may never arrive
	}
	s := e.peer.arena.pick(poolWritable, e.w.rng.IntN(8))
	if s == nil || !claimSource(e, o) {
		return false
	}
	s.locked = true
	claimDistant(e, o, s)
	return true
}

func retireWriteImm(e *endpoint, o *op) string {
	wrong := releaseSource(e, o)
	if wrong == "" && o.received {
		wrong = freeWriteImm(e.peer, o)
	}
	return wrong
}

func arriveWriteImm(e *endpoint, o *op, r *receive) string {
	fill(e.arena.want[o.distant.off+o.distantAt:][:o.size], o.key)
	if wrong := r.arena.differs(r.slot); wrong != "" {
		return wrong
	}
	if wrong := e.arena.differs(o.distant); wrong != "" || !o.complete {
		return wrong
	}
	return freeWriteImm(e, o)
}

// freeWriteImm gives the slot back when both ends are done with it.
func freeWriteImm(owner *endpoint, o *op) string {
	o.distant.unclaim(o)
	o.distant.locked = false
	return owner.rested(o.distant)
}

// claimTarget takes a slot for what a READ brings, and reports whether one was free.
func claimTarget(e *endpoint, o *op) bool {
	if o.local = e.arena.pick(poolTarget, e.w.rng.IntN(8)); o.local == nil {
		return false
	}
	o.local.taken = true
	o.localAt = e.w.rng.IntN(o.local.n - o.size + 1)
	return true
}

// claimRead chooses memory that does not change while a READ of it is under way, and
// reports whether there was a slot for what it brings.
func claimRead(e *endpoint, o *op) bool {
	pool := e.peer.arena.pools[poolReadable]
	if !claimTarget(e, o) {
		return false
	}
	claimDistant(e, o, pool[e.w.rng.IntN(len(pool))])
	o.want = bytes.Clone(e.peer.arena.want[o.distant.off+o.distantAt:][:o.size])
	return true
}

// claimReadBack chooses a slot that WRITEs before it go to, and keeps later ones off,
// which the READ might see. It reports whether there was one.
func claimReadBack(e *endpoint, o *op) bool {
	pool := e.peer.arena.pools[poolWritable]
	s := pool[e.w.rng.IntN(len(pool))]
	if s.locked || !claimTarget(e, o) {
		return false
	}
	now := bytes.Clone(e.peer.arena.want[s.off : s.off+s.n])
	for _, w := range s.claims {
		fill(now[w.distantAt:w.distantAt+w.size], w.key)
	}
	s.locked = true
	claimDistant(e, o, s)
	o.want = now[o.distantAt : o.distantAt+o.size]
	return true
}

func retireRead(e *endpoint, o *op) string {
	copy(e.arena.want[o.local.off+o.localAt:], o.want)
	wrong := e.arena.differs(o.local)
	o.local.taken = false
	o.distant.unclaim(o)
	if o.name == "READ_BACK" {
		o.distant.locked = false
	}
	if wrong == "" {
		wrong = e.rested(o.local)
	}
	if wrong == "" && o.distant.free() {
		wrong = e.peer.rested(o.distant)
	}
	return wrong
}

// rested judges a slot that nobody uses any more, and mostly puts something
// else there: a store that comes late will show.
func (e *endpoint) rested(s *slot) string {
	wrong := e.arena.differs(s)
	if wrong == "" {
		wrong = e.ticket.disturbed(e)
	}
	if wrong == "" && !e.deregistered() && e.w.rng.IntN(4) > 0 {
		e.arena.scramble(s)
		e.ticket.scrambled(e)
	}
	return wrong
}
