// Package match is the matching engine of messages: which receive takes which
// message. It is that of MPI, of FI_TAGGED of libfabric and of the tag interface of
// UCX: an endpoint with many peers, receives with a tag, a mask and a source, and
// messages that came before anybody wanted them.
//
// # What fits, and which one wins
//
// A message has a peer and a tag of 64 bits. A receive has a tag, a mask of the bits
// of it that count, and a source: a peer, or any. They fit if the tags are the same
// in all bits of the mask and the source is the peer or any. Then:
//
//   - A message that arrives takes the receive that was posted first, of all that fit.
//     If none does, it is unexpected and waits.
//   - A receive that is posted takes the message that arrived first, of all unexpected
//     ones that fit. If none does, it is queued.
//
// The order of arrival is that of the calls of Arrive, over all peers. So messages of
// one peer that a receive fits come in the order in which they were sent (MPI 4.1,
// section 3.5), if the caller calls in that order. Whether what arrives is the data
// or the announcement of a rendezvous does not matter here, so order holds across
// protocols.
//
// # What it costs
//
// Receives whose mask is Exact, from one peer or any, and messages for them are found
// through a hash table, in a time that does not depend on how many there are. Its
// hash is keyed (SipHash-1-3, as the kernel and others have it for tables that are
// open to attack) with a seed that is passed in: who does not know that cannot choose
// tags that collide. A message with many others of the same tag costs the same.
//
// Receives with any other mask are in lists, one of each peer and one for any:
//
//   - A message that arrives looks at those of its peer and those from any, in order
//     of posting, until one fits or all that are left are later than one that was
//     found: at most as many as the program has posted.
//   - Such a receive, and such a probe, looks at the messages of its source in order
//     of arrival until one fits: at most as many as are unexpected. Peers decide how
//     many these are, and whether they fit. So whoever owns the budget bounds their
//     number as well as their bytes.
//
// # Memory
//
// Nodes are embedded in what the caller has for a receive and for a message, as those
// of sched are: nothing is ever full. The two tables grow with the keys that are in
// them and shrink when these have gone for long; a tag that was seen once leaves
// nothing behind. Nothing else is allocated.
//
// How much may wait is for the caller to decide, before it calls Arrive: Unexpected
// of a peer and of the matcher has the numbers for that.
//
// # Who may call
//
// Nothing here is safe for concurrent use: a matcher, its peers and all nodes belong to
// one owner, who calls under its own lock. The package imports nothing of ours, knows
// no wire, no clock and no memory but its own.
package match
