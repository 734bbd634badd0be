package trial

import (
	"fmt"
	"strings"

	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// finish checks the world at rest, and takes it apart: everything must be given
// back, and what was still posted must come back flushed.
func (w *world) finish() {
	if !w.rest() {
		return
	}
	w.checkRest()
	for _, c := range w.conns {
		for _, e := range c.ends {
			e.force("the end")
		}
	}
	for w.round() && w.violation == nil {
	}
	for _, c := range w.conns {
		if c.open && w.violation == nil {
			w.fail(Completion, "at the end: %s", w.unflushed())
		}
	}
	for _, n := range w.nodes {
		if w.violation != nil {
			return
		}
		n.checkCounters()
		w.must(n.device.Close())
		n.checkResidue()
		n.up = false
	}
	w.checkFrames()
}

// rest lets everything that is under way arrive, and reports whether no invariant was
// violated.
func (w *world) rest() bool {
	for w.violation == nil {
		if w.steps++; w.steps > maxSteps {
			w.fail(Liveness, "it does not come to rest")
			return false
		}
		w.schedule.Apply(w.clock.Now(), w.quiet, w.happen)
		if !w.round() && !w.advance() {
			break
		}
	}
	return w.violation == nil
}

// checkRest compares the ends of every connection, with nothing under way.
func (w *world) checkRest() {
	for _, c := range w.conns {
		for _, e := range c.ends {
			if e.qp == nil || e.dead {
				continue
			}
			if e.unreliable() {
				e.restUnreliable()
			}
			if e.receives() {
				if wrong := e.shared.checkRest(); wrong != "" {
					w.fail(Conservation, "%s at rest: %s", e, wrong)
				}
			}
			s, p := e.qp.Snapshot(), e.peer.qp.Snapshot()
			if wrong := notAtRest(&s, &p, len(e.recvs)); wrong != "" {
				w.fail(Conservation, "%s at rest: %s: %s", e, wrong, s)
			}
			if wrong := e.arena.compare(0, len(e.arena.mem)); wrong != "" {
				w.fail(Memory, "%s at rest: %s", e, wrong)
			}
		}
	}
	for _, n := range w.nodes {
		if at, ok := n.device.NextDeadline(); ok {
			w.fail(Conservation, "node %d at rest: a timer runs until %s", n.index,
				campaign.ClockTime(at))
		}
		if n.words != nil {
			if wrong := n.words.check(); wrong != "" {
				w.fail(Atomics, "node %d: %s", n.index, wrong)
			}
		}
		if n.shared != nil && n.up {
			if wrong := n.shared.checkRest(); wrong != "" {
				w.fail(Conservation, "node %d at rest: %s", n.index, wrong)
			}
		}
		if _, rx := n.port.Held(); rx != 0 {
			w.fail(Conservation, "node %d at rest: %d received frames are held", n.index, rx)
		}
	}
}

// notAtRest judges a queue pair that has nothing to do. It returns what is
// wrong, "" when nothing is.
func notAtRest(s, peer *roce.Snapshot, receives int) string {
	switch {
	case s.State != roce.StateRTS:
		return "it is not in RTS"
	case s.SendPosted != 0 || s.SendBegun != 0:
		return "requests are left"
	case s.Responses != 0:
		return "answers are left"
	case s.RNRWaiting:
		return "it waits for receives"
	case int(s.RecvPosted) != receives:
		return fmt.Sprintf("%d receives are missing", receives-int(s.RecvPosted))
	case s.NextPSN != s.UnackedPSN || s.TopPSN != s.UnackedPSN:
		return "the window is not empty"
	case s.Outstanding != 0:
		return "READs are outstanding"
	case s.EarlyRequests != 0 || s.EarlyResponses != 0:
		return "packets are kept"
	case s.Type != roce.TypeUC && peer.ExpectedPSN != s.NextPSN:
		return "the peer expects another PSN"
	}
	return ""
}

// unflushed says what has no completion at the end.
func (w *world) unflushed() string {
	var b strings.Builder
	for _, c := range w.conns {
		for _, e := range c.ends {
			if c.open {
				b.WriteString(e.String())
				b.WriteString(": " + e.outstanding())
			}
		}
	}
	return b.String()
}

// checkFrames balances what went into the network with what came out.
func (w *world) checkFrames() {
	c := w.network.Counts()
	in, out := c.Sent+c.Duplicated+c.Staled, c.Delivered+c.Lost()+uint64(w.network.UnderWay())
	if in != out {
		w.fail(Counters, "%d frames went into the network, %d came out: %+v", in, out, c)
	}
}

// checkResidue wants every frame back from a device that was closed.
func (n *node) checkResidue() {
	if tx, rx := n.port.Held(); tx != 0 || rx != 0 {
		n.w.fail(Residue, "node %d: %d transmit and %d receive frames are gone", n.index, tx, rx)
	}
}

// afterAdmission are the counters of packets that were dropped after they were
// counted as received.
var afterAdmission = map[string]bool{
	"drop_ghost_response": true, "drop_future_response": true, "drop_unmatched_duplicate": true,
	"drop_out_of_window": true, "drop_after_gap": true, "drop_refused": true,
	"drop_too_long": true, "drop_local_memory": true,
}

// checkCounters compares the device's counters with what passed its port: each
// packet counts as received or as dropped, once.
func (n *node) checkCounters() {
	list, err := n.device.Counters()
	n.w.must(err)
	var sent, received, dropped, rx, tx uint64
	for _, c := range list {
		switch {
		case c.Name == "sent_pkts":
			sent = c.Value
		case c.Name == "rcvd_pkts":
			received = c.Value
		case c.Name == "rx_packets":
			rx = c.Value
		case c.Name == "tx_packets":
			tx = c.Value
		case strings.HasPrefix(c.Name, "drop_") && !afterAdmission[c.Name]:
			dropped += c.Value
		case c.Name == "retransmits":
			n.w.stats.Retransmits += c.Value
		}
	}
	if sent != tx {
		n.w.fail(Counters, "node %d: sent_pkts %d, the link sent %d", n.index, sent, tx)
	}
	if received+dropped != rx {
		n.w.fail(Counters, "node %d: %d packets received and %d dropped, the link received %d",
			n.index, received, dropped, rx)
	}
}
