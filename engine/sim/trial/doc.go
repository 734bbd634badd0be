// Package trial puts the production engine on trial: each seed is a whole run
// of several devices under virtual time, over a network that is much worse than
// any real one.
//
//	result := trial.Run(ctx, 17, trial.Options{})
//
// The seed decides everything: how many devices and connections there are, their
// attributes and queue depths, what the applications post and when they poll,
// what the network does to frames, and what else goes wrong: partitions, path
// MTU changes, peers that restart or freeze, queue pairs that are destroyed,
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
// # Adding an operation
//
// Operations are rows of one table: see operations in operation.go. A row says
// how a request claims memory here and at the peer, and what must hold when its
// completion and its message arrive; numOps and the weights of ConnConfig follow.
// endpoint.request puts what is special into the work request.
//
// # Adding a QP type
//
// A type that is not reliable needs a row of what its endpoints may post, its
// own rule in arrive (a message may be missing, none may come twice or damaged)
// and in checkOutcome, and no limits on PSNs.
package trial
