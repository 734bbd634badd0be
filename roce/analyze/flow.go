package analyze

import (
	"net/netip"

	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/wire"
)

// A Cause is why a packet was sent again.
type Cause uint8

// The causes.
const (
	Timeout    Cause = iota // nothing came for a while
	Probe                   // the same, and only the last packet was sent to ask
	NAK                     // the other end said that a PSN is missing
	RNR                     // the other end had no receive
	Selective               // a selective acknowledge named what is missing
	LostAnswer              // a part of the answer to a READ is missing
	UnknownWhy              // none of these is in the capture

	numCauses = int(iota)
)

// String names the cause.
func (c Cause) String() string {
	return [8]string{
		"timeout", "probe", "NAK", "RNR", "selective acknowledge", "lost answer", "unknown",
	}[c&7]
}

// Resent is what was sent again for a cause.
type Resent struct {
	Episodes int // times that it began anew
	Packets  Numbers
	Waited   clock.Time // from the last packet of the connection before, together
	Longest  clock.Time // of these
}

// maxRecent is how many packets of a direction are compared with one that comes twice.
const maxRecent = 64

// A gap is PSNs that did not come when they should have.
type gap struct {
	first, last wire.PSN
	at          clock.Time
	refused     bool // the other end asked for it
}

const maxGaps = 16

// A flow is what goes from a host to a queue pair: requests of one end of a connection, and its
// answers to those of the other.
type flow struct {
	route    route
	service  wire.Service
	src, dst netip.Addr
	peer     *flow // the other direction

	packets, bytes int
	payload        uint64
	requests       int // packets
	answers        int
	firstSeen      clock.Time
	lastSeen       clock.Time
	lastNumber     int
	ect, ce        Numbers
	cnp            Numbers // for the queue pair that this goes to
	mtu            int     // largest payload of a first or middle packet

	// As a requester:
	begun         bool
	first         wire.PSN
	next, nextMax wire.PSN // behind the last: a READ may take more PSNs than is known
	open          bool     // in the middle of a message
	unsure        bool     // whether it is, until the next begins
	left          int64    // of a WRITE, -1 where it is not known
	work          [numKinds]*Work
	window        window
	resent        [numCauses]Resent
	resending     bool     // the last packet was sent again
	resendNext    wire.PSN // which would go on with it
	duplicated    Numbers  // by the wire
	reordered     Numbers
	missing       Numbers // gaps
	gaps          []gap
	recent        [maxRecent]struct {
		psn  wire.PSN
		id   uint16
		used bool
	}
	pending    Cause // what the other end said last, UnknownWhy for nothing
	hasPending bool
	timing     bool // an acknowledgement of this PSN is timed
	timedPSN   wire.PSN
	timedAt    clock.Time
	rtt        Histogram
	lastAgain  int // times that the last request was sent again with nothing coming
	new, again Series
	points     Points

	// As a responder, what it said:
	answered   answers
	fromAnswer wire.PSN // expected PSN of the next answer to a READ
	reading    bool
}

// answers are what the answers of a direction said.
type answers struct {
	begun      bool
	psn        wire.PSN
	msn        uint32
	acks       int
	selective  int
	naks       [5]Numbers // by code, from the PSN sequence error
	rnrs       Numbers
	duplicates int
	lost       Numbers // answers to READs that did not come in their order
	credits    bool
	fewest     int
	last       int
}

// since is how long a connection was quiet.
func (f *flow) since(now clock.Time) clock.Time {
	last := f.lastSeen
	if f.peer != nil && f.peer.packets > 0 {
		last = max(last, f.peer.lastSeen)
	}
	return max(now-last, 0)
}

// seen looks at a packet of the flow.
func (f *flow) seen(a *Analyzer, p *dissect.Packet) {
	w := &p.RoCE
	if f.packets == 0 {
		f.firstSeen, f.service = a.now, w.Spec.Service
	}
	switch w.TClass & 3 {
	case 1, 2:
		f.ect.add(a.number)
	case 3:
		f.ce.add(a.number)
	}
	s := w.Spec
	if s.Class&wire.ClassFirst != 0 && s.Class&wire.ClassLast == 0 ||
		s.Class&wire.ClassMiddle != 0 {
		f.size(a, w.PayloadLen())
	}
	switch {
	case w.BTH.Opcode == wire.CNP:
		f.cnp.add(a.number)
	case s.Service == wire.ServiceUD:
		f.requests++
		f.new.add(a.now, w.PayloadLen())
	case s.Is(wire.ClassRequest):
		f.requests++
		f.request(a, p)
		if s.Has(wire.HasAPSN) {
			f.rider(a, p)
		}
	case s.Is(wire.ClassResponse):
		f.answers++
		f.answer(a, p)
	}
	f.packets++
	f.bytes += p.Length
	f.payload += uint64(w.PayloadLen())
	f.lastSeen, f.lastNumber = a.now, a.number
}

// size looks at the payload of a packet that has to be as long as the path MTU. Two ends of a
// tunnel may have agreed on another length, in units of 16 bytes, and no packet of theirs says so:
// all full packets have to be as long as the first, if that is one.
func (f *flow) size(a *Analyzer, n int) {
	switch {
	case f.mtu == 0 && n >= 256 && n%16 == 0 && n <= 4096:
		f.mtu = n
	case n != f.mtu:
		a.breaks(FullPayload)
	}
}

// pathMTU is the path MTU of the connection as far as it was seen, 0 where it was not.
func (f *flow) pathMTU() int {
	if f.mtu == 0 && f.peer != nil {
		return f.peer.mtu
	}
	return f.mtu
}
