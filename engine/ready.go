package engine

// readyList is the list of QPs that may have something to send, in the order
// of their turns. It is linked through the QPs, so it is never full.
type readyList struct{ head, tail *QP }

func (l *readyList) empty() bool { return l.head == nil }

// push puts qp at the end unless it is already in the list.
func (l *readyList) push(qp *QP) {
	if qp.inReady || qp.closed {
		return
	}
	qp.inReady, qp.nextReady, qp.prevReady = true, nil, l.tail
	if l.tail == nil {
		l.head = qp
	} else {
		l.tail.nextReady = qp
	}
	l.tail = qp
}

// pop takes the first; the list must not be empty.
func (l *readyList) pop() *QP {
	qp := l.head
	l.remove(qp)
	return qp
}

// remove takes qp out, if it is in.
func (l *readyList) remove(qp *QP) {
	if !qp.inReady {
		return
	}
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
	qp.inReady, qp.nextReady, qp.prevReady = false, nil, nil
}
