// Package recovery is what a reliable connection with selective repeat knows about
// packets that are missing: at the receiver a buffer for those that came early, at
// the sender a scoreboard of what has arrived, an estimate of the round trip and a
// probe for a lost tail. Go-back-N has the last two of these.
//
// It knows PSNs and time and nothing else: no queue pair, no work request, no
// memory, no counter. It imports roce/clock and, of roce/wire, PSN and the packet
// that waits in a buffer. What the architecture calls a request, a READ or an
// acknowledge is decided above, in roce; here a PSN was sent, has arrived, waits or
// is lost.
//
// The words are those of TCP where they mean the same:
//
//	cumAcked       the oldest unacknowledged PSN; all before it are acknowledged
//	sacked         behind that, what the peer said it holds (RFC 6675)
//	recoveryPoint  where the repetition under way ends
//	tail loss probe, smoothed round trip: RFC 8985 and RFC 6298
//
// A lost packet is recognised as in RFC 8985: each transmission has a number, and a
// PSN is lost when a transmission with a later number than its own has arrived.
//
// Every type belongs to the progress lock of the queue pair that it is part of. A
// Pool is shared by the queue pairs of one queue, under the progress lock of that
// queue. Nothing allocates after the first queue pair has made a Pool's memory.
package recovery
