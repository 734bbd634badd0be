package engine

// quantum is how many bytes of frames a QP may send in a round: some packets,
// so that what a QP needs is fetched from memory once for all of them, and few
// enough to be over soon. It is more than the longest frame.
const quantum = 16 << 10

// turns is the order in which QPs that may have something to send do so: a
// deficit round robin (Shreedhar and Varghese, 1995). In each round each QP may
// send a quantum of bytes; what it takes too much is taken from its next turn.
// So QPs that always have work send the same number of bytes, whatever the size
// of their messages, and none waits for more than one turn of each other one.
//
// Within a round QPs that owe their peer an answer come first, since somebody
// waits for it. A QP whose turn is over may still answer, on credit of up to a
// quantum of its next turn: so an acknowledgement does not wait for the data of
// all the others, and neither a flood of READs nor one of requests stops the
// other kind.
//
// The lists are linked through the QPs, so they are never full.
type turns struct {
	round uint32
	// lists are those of this round and the next, by the lowest bit of the
	// round, then those that answer and those that only ask.
	lists [2][2]readyList
}

// The kinds of turns.
const (
	answers = 0
	asks    = 1
)

func (t *turns) empty() bool { return t.over(t.round) && t.over(t.round+1) }

// over reports whether nobody is left in a round.
func (t *turns) over(round uint32) bool {
	lists := &t.lists[round&1]
	return lists[answers].head == nil && lists[asks].head == nil
}

// push gives qp a turn unless it waits for one already. A QP that waits to ask
// comes forward when it has to answer.
func (t *turns) push(qp *QP, answering bool) {
	if qp.closed {
		return
	}
	kind := uint32(asks)
	if answering {
		kind = answers
	}
	if qp.waiting {
		if !answering || qp.place&1 == answers {
			return
		}
		t.remove(qp)
	}
	round := t.round
	if qp.round == round && !qp.maySend(answering) {
		round++
	}
	qp.waiting, qp.place = true, uint8(round&1<<1|kind)
	t.list(qp).push(qp)
}

// list is the one in which qp waits.
func (t *turns) list(qp *QP) *readyList { return &t.lists[qp.place>>1][qp.place&1] }

// pick takes out the QP whose turn it is, nil when none waits.
func (t *turns) pick() *QP {
	if t.over(t.round) {
		if t.over(t.round + 1) {
			return nil
		}
		t.round++
	}
	lists := &t.lists[t.round&1]
	qp := lists[answers].head
	if qp == nil {
		qp = lists[asks].head
	}
	t.remove(qp)
	if qp.round != t.round {
		// What it did not use of its last turn it did not need.
		qp.round, qp.credit = t.round, min(qp.credit+quantum, quantum)
	}
	return qp
}

// remove takes qp out, if it waits.
func (t *turns) remove(qp *QP) {
	if qp.waiting {
		t.list(qp).remove(qp)
		qp.waiting = false
	}
}

// maySend reports whether a QP may send another packet in this round.
func (q *QP) maySend(answering bool) bool {
	return q.credit > 0 || (answering && q.credit > -quantum)
}

// A readyList is a list of QPs in the order of their turns.
type readyList struct{ head, tail *QP }

// push puts qp at the end.
func (l *readyList) push(qp *QP) {
	qp.nextReady, qp.prevReady = nil, l.tail
	if l.tail == nil {
		l.head = qp
	} else {
		l.tail.nextReady = qp
	}
	l.tail = qp
}

// remove takes qp out, which is in.
func (l *readyList) remove(qp *QP) {
	if qp.prevReady == nil {
		l.head = qp.nextReady
	} else {
		qp.prevReady.nextReady = qp.nextReady
	}
	if qp.nextReady == nil {
		l.tail = qp.prevReady
	} else {
		qp.nextReady.prevReady = qp.prevReady
	}
	qp.nextReady, qp.prevReady = nil, nil
}
