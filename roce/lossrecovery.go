package roce

import "xroce/roce/wire"

// A lossRecovery decides for a requester what was lost, and what it then sends again.
// There are two: goBackN is that of the architecture, selectiveRepeat needs a peer that
// has the extension. The requester asks it at the few places where they differ; PSNs,
// retries and timers stay the requester's.
type lossRecovery interface {
	// restart begins a connection at a PSN.
	restart(psn wire.PSN)
	// stop ends it: nothing is kept and no deadline is left.
	stop()
	// deadline returns when handleDeadline wants to be called, 0 for never.
	deadline() Time
	handleDeadline(now Time)

	// span is how many PSNs from the oldest unacknowledged one on may be used while
	// there is one.
	span() uint32
	// selective reports whether only what was lost goes again: then each packet that
	// goes again asks for an acknowledge, and the response to a READ may end where data
	// that is here already begins.
	selective() bool
	// probing reports whether the next packet is a tail probe.
	probing() bool
	// skip moves psn, at which something was sent before, over what need not go again.
	skip()
	// readEnd returns the PSN behind the data that a READ asks for from psn on.
	readEnd(psn, end wire.PSN) wire.PSN
	// sent follows the packet psn of w that left, for the first time or again.
	sent(now Time, psn wire.PSN, w *sendWQE, first bool)

	// acknowledged takes a positive acknowledge of everything before a PSN.
	acknowledged(now Time, psn wire.PSN)
	// requestsMissing takes the news that requests from psn up to top are missing at
	// the peer, and all before psn is there. It reports whether that can be acted on.
	requestsMissing(now Time, psn, top wire.PSN) bool
	// dataMissing takes an acknowledge of everything before a PSN while data before it is
	// missing here.
	dataMissing(now Time, psn wire.PSN)
	// handleData takes the response to a READ, an atomic or their like.
	handleData(now Time, p *wire.Packet)
	// handleSelectiveAck takes the bitmap of what the peer has.
	handleSelectiveAck(now Time, p *wire.Packet)

	// advanced follows each advance of una, and rearm what is done with timers then.
	advanced(now Time)
	rearm(now Time)
	// timedOut acts on the local ACK timer.
	timedOut(now Time)
	// wentBack follows the decision to send everything again, for which a retry was taken.
	wentBack(now Time)
	// refused follows an RNR NAK: the peer did not keep psn, though its bitmap said so.
	refused(psn wire.PSN)
	// resultDropped follows a response that could not be stored: it is requested again.
	resultDropped()
}

// maxSpan is half of the PSN space: no more may be unanswered (IBA 9.7.2).
const maxSpan = 1 << 23
