// Package trial puts the production engine on trial: each seed is a whole run
// of several devices under virtual time, over a network that is much worse than
// any real one.
//
//	result := trial.Run(ctx, 17, trial.Options{})
//
// The seed decides everything: how many devices and connections there are, their
// attributes and queue depths, what the applications post and when they poll,
// what the network does to frames, and what else goes wrong: partitions, path
// MTU changes, peers that restart, freeze or starve, queue pairs that are destroyed,
// memory that is deregistered, requests that must be refused.
//
// A run has two phases. In the first one all faults are on. In the second one,
// the quiet phase, there are none: everything must finish, on connections made
// anew where the old ones died.
//
// An independent model, which is simple and slow, says what each byte of memory
// must hold and which completions must come. Named invariants (see Invariant)
// are checked after every event, at each completion and at the end. Errors are
// not forgiven because there are faults: a rule says for each status what must
// have happened before, see excuse.
//
// # What a seed draws
//
// derivePlain draws connections of type RC with SEND, WRITE and READ. widen adds
// the rest, from a generator of its own, so that seeds keep their plain draws:
// atomics on words that several connections share (see words), ATOMIC_WRITE,
// FLUSH, inline data, SEND_WITH_INV and keys that are out of use then,
// connections of type UC, shared receive queues, extensions, rate limits, and CQs
// whose depth changes. Fences are drawn in both.
//
// lend makes memory windows of some tickets (see ticket): the owner binds one to a
// part of a region, which itself grants peers nothing, and takes it back now and then
// while the peer uses it; requests beside it must fail, and nothing may change while
// nobody has its key. It has a generator of its own too.
//
// starve has hosts not be scheduled for short whiles, again and again, alone or all
// together: neither engine nor application runs, frames wait in the queue of the port,
// which is bounded, and timers run out. It has a generator of its own, once more.
//
// # Adding an operation
//
// Operations are rows of one table: see operations in operation.go. A row says
// how a request claims memory here and at the peer, and what must hold when its
// completion and its message arrive; numOps and the weights of ConnConfig follow.
// endpoint.request puts what is special into the work request.
//
// # Adding a QP type
//
// A type that is not reliable is in unreliable.go: its rows are those that say
// so, a message may be missing, none may come twice or damaged, and as many may
// be missing as frames were harmed. Where the network makes copies or lets frames
// overtake, a UC may deliver again and out of order, as IBA 9.8.2 lets it.
//
// # What it touches
//
// A run is one goroutine and shares nothing with others, so Campaign has several of them at
// once. It reads no clock, and nothing outside of the process.
package trial
