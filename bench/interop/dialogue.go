package main

import (
	"bytes"
	"fmt"
	"sync"

	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// A step is a packet of a dialogue.
type step struct {
	// key says which packet it is: of data the opcode and the PSN from the first
	// on, of the connection manager the message, and of those that end a connection
	// which one of several.
	key string
	// fields are what is compared of it, by name. What is random in each run is in
	// a form that is not; see rules.
	fields map[string]string
}

// A content is what a stream consists of.
type content int

// The kinds, in the order in which differences are told.
const (
	messages content = iota // of the connection manager
	requests
	answers // responses and acknowledgements
)

// A stream is which packets of a dialogue belong together: within one their order
// is fixed, between two of them it depends on time.
type stream struct {
	from softroce.End
	kind content
	conn int // which connection of the dialogue, from 1 on; 0 of messages
}

// String names a stream.
func (s stream) String() string {
	return [...]string{"messages", "requests", "answers"}[s.kind] + ofConnection(s.conn)
}

// ofConnection names a connection when it is not the first one.
func ofConnection(conn int) string {
	if conn <= 1 {
		return ""
	}
	return fmt.Sprintf(" of connection %d", conn)
}

// A dialogue is what two ends said to each other, without repetitions: those
// depend on time as well. Safe for concurrent use.
type dialogue struct {
	mu      sync.Mutex // of what follows
	book    book
	first   map[stream]wire.PSN // of the requests of an end
	next    map[stream]wire.PSN // the least that is no repetition
	said    map[softroce.End][]datagram
	hanging map[int]bool // connections that were made and not ended
	steps   map[stream][]step
	more    chan struct{} // closed with the next packet
}

// A datagram is a message of the connection manager as it was sent.
type datagram struct {
	psn wire.PSN
	mad []byte
}

func newDialogue() *dialogue {
	return &dialogue{
		book: newBook(), first: map[stream]wire.PSN{}, next: map[stream]wire.PSN{},
		said: map[softroce.End][]datagram{}, hanging: map[int]bool{}, steps: map[stream][]step{},
		more: make(chan struct{}),
	}
}

// other is the end that a packet goes to.
func other(e softroce.End) softroce.End { return softroce.B - e }

// add takes the next packet.
func (d *dialogue) add(from softroce.End, p *wire.Packet) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.BTH.DestQP == gsiQPN {
		d.addMessage(from, p)
	} else {
		d.addData(from, p)
	}
	close(d.more)
	d.more = make(chan struct{})
}

// addData takes a packet of a connection or a datagram.
func (d *dialogue) addData(from softroce.End, p *wire.Packet) {
	s := stream{from: from, kind: requests, conn: d.book.connection(other(from), p.BTH.DestQP)}
	asked := s
	if !p.Spec.Is(wire.ClassRequest) {
		s.kind = answers
		asked.from = other(from)
	}
	psn := p.BTH.PSN
	if next, begun := d.next[s]; begun && psn.Before(next) {
		return // a repetition
	}
	d.next[s] = psn.Add(1)
	_, begun := d.first[asked]
	if !begun {
		d.first[asked] = psn
	}
	n := step{
		key:    fmt.Sprintf("%s psn+%d", p.BTH.Opcode, psn.Diff(d.first[asked])),
		fields: map[string]string{},
	}
	if !begun {
		n.fields[firstPSN] = d.book.origin(aPSN, other(asked.from), uint64(psn))
	}
	d.headers(n.fields, from, p)
	d.steps[s] = append(d.steps[s], n)
}

// again reports whether a message is a REQ like the one before, which found nobody who
// listened: perftest's server pauses between two connections, and its client tries
// until it is there. That is a repetition too, and the REJ is taken back.
func (d *dialogue) again(from softroce.End, n step) bool {
	mine := d.steps[stream{from: from, kind: messages}]
	their := stream{from: other(from), kind: messages}
	theirs := d.steps[their]
	if len(mine) == 0 || len(theirs) == 0 {
		return false
	}
	asked, answer := mine[len(mine)-1], theirs[len(theirs)-1]
	const service = "REQ.ServiceID"
	if n.key != cm.AttributeREQ.String() || asked.key != n.key ||
		asked.fields[service] != n.fields[service] || answer.key != cm.AttributeREJ.String() ||
		answer.fields["REJ.Reason"] != cm.ReasonInvalidServiceID.String() {
		return false
	}
	d.steps[their] = theirs[:len(theirs)-1]
	return true
}

// ackReqOfQP1 is the name of AckReq of a message of the connection manager.
const ackReqOfQP1 = "BTH.AckReq of QP 1"

// firstPSN is the name of what the first request of a connection says.
const firstPSN = "BTH.PSN of the first"

// addMessage takes a packet of the connection manager.
func (d *dialogue) addMessage(from softroce.End, p *wire.Packet) {
	// QP 1 goes on from one program to the next, and counts what it repeats.
	before := d.said[from]
	m := datagram{psn: p.BTH.PSN, mad: bytes.Clone(p.Payload)}
	d.said[from] = append(before, m)
	for _, b := range before {
		if bytes.Equal(b.mad, m.mad) {
			return // a repetition
		}
	}
	n, ok := d.message(from, p)
	if !ok || d.again(from, n) {
		return
	}
	n.fields["BTH.PSN"] = "its first"
	if len(before) > 0 {
		n.fields["BTH.PSN"] = fmt.Sprintf("%+d", m.psn.Diff(before[len(before)-1].psn))
	}
	d.headers(n.fields, from, p)
	// Nothing acknowledges a datagram, so this is not the bit that it is of data.
	n.fields[ackReqOfQP1] = n.fields["BTH.AckReq"]
	delete(n.fields, "BTH.AckReq")
	s := stream{from: from, kind: messages}
	d.steps[s] = append(d.steps[s], n)
}
