package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"xroce/roce/clock"
	"xroce/roce/wire"
)

// A finding is a sentence of the diagnosis.
type finding struct {
	weight int
	text   string
}

// Weights of findings: what ends a connection, what makes it slow, what is good to know.
const (
	fatal = 3
	slow  = 2
	note  = 1
)

// maxFindings is how many sentences a diagnosis has.
const maxFindings = 40

// diagnose says in plain words what was wrong.
func diagnose(r *Report, flows []*flow) []string {
	var list []finding
	say := func(weight int, format string, args ...any) {
		list = append(list, finding{weight, fmt.Sprintf(format, args...)})
	}
	for _, f := range flows {
		f.findLosses(say)
		f.findRefusals(say)
		f.findRest(say)
	}
	findGeneral(r, say)
	slices.SortStableFunc(list, func(x, y finding) int { return cmp.Compare(y.weight, x.weight) })
	var texts []string
	for _, f := range list {
		if len(texts) == maxFindings {
			return append(texts, fmt.Sprintf("And %d more of this kind.", len(list)-maxFindings))
		}
		texts = append(texts, f.text)
	}
	if len(texts) == 0 {
		if r.RoCE == 0 {
			return []string{"There is no packet of RoCE in the capture."}
		}
		return []string{"Nothing went wrong."}
	}
	return texts
}

// findGeneral says what is wrong with the capture as a whole.
func findGeneral(r *Report, say func(int, string, ...any)) {
	if n := r.BadICRC; n.Count > 0 {
		say(slow, "%s with a wrong ICRC, as if damaged on the wire (%s): the receiver drops "+
			"them without an answer.", packets(n.Count), numbers(n))
	}
	if n := r.Refused; n.Count > 0 {
		say(slow, "%s look like RoCE and are malformed (%s).", packets(n.Count), numbers(n))
	}
	if n := r.ManagerAgain; n.Count > 0 {
		say(slow, "The connection manager repeated itself %s (%s): a message was lost, or its "+
			"answer was late.", times(n.Count), numbers(n))
	}
	for _, x := range r.Rejected {
		say(fatal, "%s refused a connection: %s (packet %d).", x.From, x.Reason, x.Packet)
	}
	for _, v := range r.Violations {
		say(slow, "Against %s: %s, %s (%s).", v.Clause, v.Rule, times(v.Count), numbers(v.Numbers))
	}
	if r.Dropped > 0 {
		say(note, "The capture itself lost %s: what seems to be missing may have been there.",
			packets(int(r.Dropped)))
	}
	if r.NotFollowed > 0 {
		say(note, "%s of connections behind the first %d were only counted.",
			packets(r.NotFollowed), MaxFlows)
	}
	if r.Snapped > 0 {
		say(note, "Of %s the capture kept only the beginning: their ICRC was not checked.",
			packets(r.Snapped))
	}
}

// name names the queue pair that sends a flow, by that it sends to where its own is not known.
func (f *flow) name() string {
	if f.peer != nil {
		return fmt.Sprintf("QP 0x%06x of %s", f.peer.route.to.qpn, f.src)
	}
	return fmt.Sprintf("The sender %s to QP 0x%06x of %s", f.src, f.route.to.qpn, f.dst)
}

// lossWords say what a cause means; in the middle is how often and how long.
var lossWords = [numCauses]string{
	Timeout: "waited for a timeout %s: the end of a message, or what acknowledges it, was lost",
	Probe: "asked with its last packet after silence %s: the end of a message, or what " +
		"acknowledges it, was lost",
	NAK: "went back %s because packets were missing at the other end (NAK, PSN sequence " +
		"error)",
	RNR:        "had to wait %s because the other end had no receive posted (RNR NAK)",
	Selective:  "repaired losses %s that a selective acknowledge named",
	LostAnswer: "asked again %s for a part of a READ that was lost",
	UnknownWhy: "sent packets again %s for a reason that the capture does not show",
}

// findLosses says what was sent again.
func (f *flow) findLosses(say func(int, string, ...any)) {
	for c := range Cause(numCauses) {
		r := &f.resent[c]
		if r.Packets.Count == 0 {
			continue
		}
		often := fmt.Sprintf("once (%s)", span(r.Waited))
		if r.Episodes != 1 {
			often = fmt.Sprintf("%s (%s at most, %s together)", times(r.Episodes),
				span(r.Longest), span(r.Waited))
		}
		say(slow, "%s "+lossWords[c]+"; %s again (%s).", f.name(), often,
			packets(r.Packets.Count), numbers(r.Packets))
	}
	if f.hasPending && f.pending == RNR && len(f.window.list) > 0 && f.lastAgain > 0 {
		say(fatal, "%s gave up: the other end still had no receive posted (RNR NAK) after it "+
			"had tried again %s.", f.name(), times(f.lastAgain))
	}
	if n := len(f.window.list); f.lastAgain > 1 && !f.hasPending && n > 0 && f.reliable() {
		say(fatal, "%s got no answer any more: its last request was sent again %s, until packet "+
			"%d, and nothing came. The other end is gone, or the way to it or back is broken.",
			f.name(), times(f.lastAgain), f.lastNumber)
	}
}

// refusalWords say what a NAK code means.
var refusalWords = map[wire.Syndrome]string{
	wire.NAKInvalidRequest: "an invalid request: a message longer than the receive, or out " +
		"of order, or of a kind that is not enabled",
	wire.NAKRemoteAccessError: "a remote access error: a wrong or invalidated key, an " +
		"address outside of the region, or a permission that is missing",
	wire.NAKRemoteOperationalError: "a remote operational error: the other end could not do it",
	wire.NAKInvalidRDRequest:       "an invalid RD request",
}

// findRefusals says what an end refused.
func (f *flow) findRefusals(say func(int, string, ...any)) {
	for i, n := range f.answered.naks {
		words, ok := refusalWords[wire.NAKPSNSequenceError+wire.Syndrome(i)]
		if n.Count > 0 && ok {
			say(fatal, "%s refused a request for %s (%s). The connection ends by that.", f.name(),
				words, numbers(n))
		}
	}
	again := f.peer != nil && f.peer.resent[RNR].Packets.Count > 0
	if n := f.answered.rnrs; n.Count > 0 && !again {
		say(fatal, "%s had no receive posted (RNR NAK %s, %s), and the other end did not try "+
			"again.", f.name(), times(n.Count), numbers(n))
	}
}

// findRest says what else there is to know of a flow.
func (f *flow) findRest(say func(int, string, ...any)) {
	if n := f.reordered; n.Count > 0 {
		say(slow, "The wire changed the order of packets from %s to %s, %s (%s).", f.src, f.dst,
			times(n.Count), numbers(n))
	}
	if n := f.duplicated; n.Count > 0 {
		say(slow, "The wire doubled %s from %s to %s (%s).", packets(n.Count), f.src, f.dst,
			numbers(n))
	}
	if n := f.ce; n.Count > 0 {
		cnps := 0
		if f.peer != nil {
			cnps = f.peer.cnp.Count
		}
		answer := fmt.Sprintf("%d CNPs came back", cnps)
		if cnps == 0 {
			answer = "no CNP came back, so the sender does not slow down"
		}
		say(slow, "A switch between %s and %s was congested: %s with ECN CE (%s); %s.", f.src,
			f.dst, packets(n.Count), numbers(n), answer)
	} else if n := f.cnp; n.Count > 0 {
		say(slow, "%s told %s to slow down with %d CNPs (%s).", f.src, f.dst, n.Count, numbers(n))
	}
	if f.answered.credits && f.answered.fewest == 0 && f.peer != nil && f.peer.work[Send] != nil {
		say(note, "%s had no receive left at times, by the credits that it told.", f.name())
	}
	lost := 0
	for c := range numCauses {
		lost += f.resent[c].Packets.Count
	}
	if n := f.missing; n.Count > 0 && lost == 0 {
		say(note, "PSNs from %s to QP 0x%06x are missing (%s) and did not come again: they are "+
			"lost, or the capture has not seen them.", f.src, f.route.to.qpn, numbers(n))
	}
	if !f.reliable() || f.packets == 0 {
		return
	}
	if f.peer == nil || f.peer.packets == 0 {
		what := "answers"
		if f.requests == 0 {
			what = "requests"
		}
		say(note, "From %s to QP 0x%06x of %s the capture has packets, but none the other way: "+
			"no %s.", f.src, f.route.to.qpn, f.dst, what)
	}
}

// packets counts them in words.
func packets(n int) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}

// times counts them in words.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// numbers names the first packets of something.
func numbers(n Numbers) string {
	var b strings.Builder
	b.WriteString("packet")
	if n.Count > 1 {
		b.WriteString("s")
	}
	for i, p := range n.Packets {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", p)
	}
	if n.Count > len(n.Packets) {
		b.WriteString(", ...")
	}
	return b.String()
}

// span is a duration with three digits.
func span(t clock.Time) string {
	d := time.Duration(t)
	switch {
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	case d >= time.Microsecond:
		d = d.Round(10 * time.Nanosecond)
	}
	return d.String()
}
