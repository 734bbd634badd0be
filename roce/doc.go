// Package roce is the InfiniBand transport over Ethernet without any I/O: queue
// pairs, completion queues and work requests in the vocabulary of verbs.
//
// A QP is a value with two faces. The application's face posts work requests
// and polls completions; it may be used from any goroutine. The wire's face is
// driven by whoever holds the progress lock of the queue that owns the QP:
//
//	HandlePacket(now, pkt)         a packet came in; pkt is borrowed for the call
//	NextPacket(now, frame) int     write the next packet to send, 0 when none is due
//	NextDeadline() (Time, bool)    when to come back if nothing happens
//	HandleDeadline(now)            that time has come
//
// Nothing here reads a clock, starts a goroutine, logs or allocates once a QP
// exists. Time is passed in, randomness is passed in, and so the same code runs
// on AF_XDP, under virtual time in a simulator and against a replayed capture.
//
// Behind both faces are two halves that never call each other: the requester, which
// has the send queue (requester.go, transmit.go, completer.go), and the responder, which
// has the receives (responder.go, execute.go, response.go). What both need is in the
// transport (transport.go): state, path, attributes, memory, counters. The QP (qp.go)
// stands before both. How a requester recovers from losses is a policy with two
// implementations, see lossrecovery.go. An error moves the state at once; what was posted
// is flushed when the call ends. The files of this package call each other one way.
//
// What a peer does wrong becomes a counter, a NAK or a completion status; what
// the caller does wrong becomes an error; a broken invariant panics. What only one
// operation needs, at both ends, is in a file called like it: send.go, write.go, read.go,
// atomic.go, flush.go and so on.
//
// The vocabulary is that of package verbs, and the queues are those of package queue; their
// names are also ours, in api.go, so that whoever uses queue pairs needs one import.
//
// The package imports the rooms below it (clock, counter, wire, mem, recovery, cc, verbs,
// queue) and the standard library. It reaches memory through mem alone. Posting holds the
// lock of a work queue, which is taken after the progress lock; no lock is held when a
// callback of QPConfig is called, but the progress lock.
//
// Sources: IBA volume 1, chapters 9 (transport) and 10, 11 (verbs).
package roce
