package roce_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A replay is a captured conversation in which we are one of the hosts.
type replay struct {
	*captureHost
	call  int // the next one to make
	now   roce.Time
	over  bool // all packets came
	frame []byte
	halve bool // packets come in two parts, as from a ring of small frames

	sent, leftOut           int // requests of ours, and those of them that we did not send
	took, served, responded int // packets of the peer, its requests, answers of ours
}

func newReplay(t *testing.T, c *capture, host byte) *replay {
	t.Helper()
	return &replay{captureHost: newCaptureHost(t, c, host), frame: make([]byte, 8192)}
}

// play goes through the packets, then through what is left of the dialogue.
func (r *replay) play() {
	r.t.Helper()
	for i, p := range r.c.packets {
		r.now = r.c.times[i]
		if isRequest(p) {
			r.begin(i)
		}
		for _, s := range r.sides {
			if at, ok := s.qp.NextDeadline(); ok && at <= r.now {
				s.qp.HandleDeadline(r.now)
			}
		}
		switch {
		case r.c.from[i] != r.name:
			r.take(i)
		case isRequest(p):
			r.compareRequest(i)
		default:
			s := r.sender(p)
			text, changed := s.theirs.fromFirst(p)
			if changed {
				r.remarks[anew] = true
			}
			s.theirs.add(r.c.asWeDo(text))
			r.responded++
		}
	}
	r.over = true
	r.runTo(len(r.c.calls))
	for _, s := range r.sides {
		r.end(s)
	}
}

// runTo makes the host's calls before the n-th.
func (r *replay) runTo(n int) {
	r.t.Helper()
	for ; r.call < n; r.call++ {
		if c := r.c.calls[r.call]; c.host == r.name {
			r.run(c)
		}
	}
}

// begin makes the calls before the request of which packet i is the first, and
// posts it when it is ours. The dialogue has no times: what a program did before
// it posted a request it did before the request's packets.
func (r *replay) begin(i int) {
	r.t.Helper()
	host := r.c.from[i]
	last := slices.IndexFunc(r.c.posts, func(p *posted) bool {
		return p.covers(host, r.c.packets[i])
	})
	if last < 0 {
		r.t.Fatalf("packet %d: %s: nothing posted sends it", i, roctest.Describe(r.c.packets[i]))
	}
	of := r.c.posts[last]
	for _, p := range r.c.posts[:last+1] {
		if p.begun || p.host != of.host || p.qp != of.qp {
			continue // a lost packet is not in the capture, but its request was posted
		}
		p.begun = true
		r.runTo(slices.Index(r.c.calls, p.call))
		if p.host == r.name {
			r.postRequest(p.call)
		}
	}
}

// sender is the side that sent packet p.
func (r *replay) sender(p *wire.Packet) *side {
	r.t.Helper()
	for _, s := range r.sides {
		if p.Spec.Has(wire.HasDETH) && p.DETH().SrcQP == s.qp.Num() ||
			s.typ != roce.TypeUD && p.BTH.DestQP == s.qp.Attr().DestQPN {
			return s
		}
	}
	r.t.Fatalf("nobody sent %s", roctest.Describe(p))
	return nil
}

// take gives a packet of the peer to the queue pairs that it is for.
func (r *replay) take(i int) {
	r.t.Helper()
	p := r.arriving(i)
	taken := false
	for _, s := range r.sides {
		if s.qp.Num() != p.BTH.DestQP && !s.groups[p.Dst] {
			continue
		}
		taken = true
		if r.needsReceive(s, i) {
			r.provide(s)
		}
		s.qp.HandlePacket(r.now, p)
		if isRequest(p) {
			r.collect(s)
		}
	}
	if !taken {
		r.t.Errorf("packet %d: %s: nobody is there", i, roctest.Describe(p))
	}
	r.took++
	r.served += bitOf(isRequest(p))
}

// needsReceive reports whether packet i takes a receive and the capture does not
// show that there was none.
func (r *replay) needsReceive(s *side, i int) bool {
	p := r.c.packets[i]
	if !p.Spec.Is(wire.ClassSend|wire.ClassFirst) &&
		!p.Spec.Is(wire.ClassWrite|wire.ClassLast|wire.ClassImm) {
		return false
	}
	if s.typ != roce.TypeRC {
		return true
	}
	if p.BTH.PSN != s.qp.Snapshot().ExpectedPSN || !p.VerifyICRC() {
		return false
	}
	for j, response := range r.c.packets[i+1:] {
		again := response.BTH.DestQP == p.BTH.DestQP && response.BTH.PSN == p.BTH.PSN
		if isRequest(response) && again && r.c.from[i+1+j] != r.name {
			return true
		}
		if r.c.from[i+1+j] == r.name && response.BTH.DestQP == s.qp.Attr().DestQPN &&
			response.Spec.Is(wire.ClassResponse) && response.BTH.PSN == p.BTH.PSN {
			return !response.Spec.Has(wire.HasAETH) ||
				response.AETH().Syndrome&^0x1f != wire.RNRSyndrome(0)
		}
	}
	return true
}

// provide posts a receive unless there is one. When the program posted none the
// queue pair is left without. Soft-RoCE counts no credits, and so does not say
// that there are some again.
func (r *replay) provide(s *side) {
	r.t.Helper()
	if s.posted() > 0 {
		return
	}
	for i := r.call; len(s.waiting) == 0 && i < len(r.c.calls); i++ {
		c := r.c.calls[i]
		if c.host == r.name && c.verb == "recv" {
			r.runTo(i + 1)
		} else if c.host == r.name && c.verb == "poll" {
			return
		}
	}
	if len(s.waiting) == 0 {
		return
	}
	r.collect(s)
	responses := len(s.ours.texts)
	must(r.t, s.post(&s.waiting[0]))
	s.waiting = s.waiting[1:]
	r.collect(s)
	for _, text := range s.ours.texts[responses:] {
		if !strings.HasPrefix(text, wire.RCAck.Spec().Name) || strings.Contains(text, "NAK") {
			r.t.Errorf("%s for a posted receive", text)
		}
	}
	s.ours.texts = s.ours.texts[:responses]
}

// collect takes what the queue pair has to send now.
func (r *replay) collect(s *side) {
	r.t.Helper()
	for n := s.qp.NextPacket(r.now, r.frame); n > 0; n = s.qp.NextPacket(r.now, r.frame) {
		r.sort(s, r.frame[:n])
	}
}

// sort puts a packet of ours with the answers or with the requests.
func (r *replay) sort(s *side, frame []byte) {
	r.t.Helper()
	var p wire.Packet
	must(r.t, roctest.Frame(frame))
	p.Decode(frame, nil)
	if isRequest(&p) {
		s.requests = append(s.requests, bytes.Clone(frame))
		return
	}
	s.ours.add(s.ours.text(&p))
}

// compareRequest wants the request that the capture has from us.
func (r *replay) compareRequest(i int) {
	r.t.Helper()
	p := r.c.packets[i]
	s := r.sender(p)
	r.sent++
	if s.typ == roce.TypeRC && p.BTH.PSN.Before(s.qp.Snapshot().UnackedPSN) &&
		len(s.requests) == 0 {
		// Soft-RoCE sends to the end what it began to send again, we leave out
		// what was acknowledged meanwhile.
		r.leftOut++
		return
	}
	for len(s.requests) == 0 {
		n := s.qp.NextPacket(r.now, r.frame)
		if n == 0 {
			r.t.Fatalf("packet %d: nothing to send, want %s; %s", i, roctest.Describe(p),
				s.qp.Snapshot())
		}
		r.sort(s, r.frame[:n])
	}
	ours := s.requests[0]
	s.requests = s.requests[1:]
	got, want := freeFields(ours), freeFields(r.c.frames[i])
	if !bytes.Equal(got, want) {
		var q wire.Packet
		q.Decode(ours, nil)
		r.t.Errorf("packet %d: %s, want %s\n%x\n%x", i, roctest.Describe(&q),
			roctest.Describe(p), got, want)
	}
}

// end compares the answers, and wants nothing to be left.
func (r *replay) end(s *side) {
	r.t.Helper()
	r.collect(s)
	if ours, theirs := s.ours.texts, s.theirs.texts; !slices.Equal(ours, theirs) {
		r.t.Errorf("QP 0x%06x answered\n%s\nwant\n%s", s.qp.Num(), strings.Join(ours, "\n"),
			strings.Join(theirs, "\n"))
	}
	if len(s.requests) > 0 {
		r.t.Errorf("QP 0x%06x has more to send", s.qp.Num())
	}
	for _, cq := range []*roce.CQ{r.send, r.recv} {
		for _, wc := range drain(r.t, cq) {
			// The programs did not poll what was flushed or refused.
			if wc.Status == roce.StatusSuccess || s.qp.State() != roce.StateErr {
				r.t.Errorf("completion %+v that the program did not see", wc)
			}
		}
	}
}
