package dialogue

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A Dialogue is what two ends said to each other, without repetitions: those
// depend on time as well. Safe for concurrent use.
type Dialogue struct {
	mu    sync.Mutex // of what follows
	book  book
	first map[stream]wire.PSN // of the requests of an end
	next  map[stream]wire.PSN // the least that is no repetition
	said  map[softroce.End][]datagram
	steps map[stream][]step
	more  chan struct{} // closed with the next packet
}

// A datagram is a message of the connection manager as it was sent.
type datagram struct {
	psn wire.PSN
	mad []byte
}

// New makes a dialogue in which nothing was said.
func New() *Dialogue {
	return &Dialogue{
		book: newBook(), first: map[stream]wire.PSN{}, next: map[stream]wire.PSN{},
		said: map[softroce.End][]datagram{}, steps: map[stream][]step{},
		more: make(chan struct{}),
	}
}

// Add takes the next packet.
func (d *Dialogue) Add(from softroce.End, p *wire.Packet) {
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
func (d *Dialogue) addData(from softroce.End, p *wire.Packet) {
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
	headers(&d.book, from, p, n.fields)
	d.steps[s] = append(d.steps[s], n)
}

// again reports whether a message is a REQ like the one before, which found nobody who
// listened: perftest's server pauses between two connections, and its client tries
// until it is there. That is a repetition too, and the REJ is taken back.
func (d *Dialogue) again(from softroce.End, n step) bool {
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

// addMessage takes a packet of the connection manager.
func (d *Dialogue) addMessage(from softroce.End, p *wire.Packet) {
	// QP 1 goes on from one program to the next, and counts what it repeats.
	before := d.said[from]
	m := datagram{psn: p.BTH.PSN, mad: bytes.Clone(p.Payload)}
	d.said[from] = append(before, m)
	for _, b := range before {
		if bytes.Equal(b.mad, m.mad) {
			return // a repetition
		}
	}
	n, ok := d.book.message(from, p)
	if !ok || d.again(from, n) {
		return
	}
	n.fields["BTH.PSN"] = "its first"
	if len(before) > 0 {
		n.fields["BTH.PSN"] = fmt.Sprintf("%+d", m.psn.Diff(before[len(before)-1].psn))
	}
	headers(&d.book, from, p, n.fields)
	// Nothing acknowledges a datagram, so this is not the bit that it is of data.
	n.fields[ackReqOfQP1] = n.fields["BTH.AckReq"]
	delete(n.fields, "BTH.AckReq")
	s := stream{from: from, kind: messages}
	d.steps[s] = append(d.steps[s], n)
}

// restTime is how long a dialogue may take to end after its programs: as long as
// the answer to a DREQ may take that nobody waits for.
const restTime = 2 * time.Second

// Rest waits until the connections that were made are ended by both sides, as hosts
// do by themselves when their programs are over.
func (d *Dialogue) Rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(restTime))
	defer cancel()
	for {
		d.mu.Lock()
		hanging, more := len(d.book.hanging), d.more
		d.mu.Unlock()
		if hanging == 0 {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return // and what is missing is told
		}
	}
}
