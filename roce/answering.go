package roce

// Answering tells whether the responder owes the peer a packet: such a QP is
// to send before those that only have requests. It needs the progress lock.
func (q *QP) Answering() bool { return q.rsp.fifo.n > 0 }
