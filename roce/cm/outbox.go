package cm

// outgoing is a MAD that waits to be sent.
type outgoing struct {
	to  Path
	mad [MADLen]byte
}

// outbox is a bounded queue of MADs, a ring that grows up to its limit.
type outbox struct {
	ring  []outgoing
	head  int
	n     int
	limit int
}

// add returns the next free place, nil when the outbox is full.
func (o *outbox) add() *outgoing {
	if o.n == o.limit {
		return nil
	}
	if o.n == len(o.ring) {
		bigger := make([]outgoing, min(max(8, 2*len(o.ring)), o.limit))
		k := copy(bigger, o.ring[o.head:])
		copy(bigger[k:], o.ring[:o.head])
		o.ring, o.head = bigger, 0
	}
	slot := &o.ring[(o.head+o.n)%len(o.ring)]
	o.n++
	return slot
}

// take returns the oldest, valid until the next add, nil when there is none.
func (o *outbox) take() *outgoing {
	if o.n == 0 {
		return nil
	}
	slot := &o.ring[o.head]
	o.head = (o.head + 1) % len(o.ring)
	o.n--
	return slot
}

// NextMAD writes the next MAD to send, from QP 1 to QP 1, to buf, which must have
// MADLen bytes, and returns where it goes. It reports false when there is none.
func (m *Machine) NextMAD(buf []byte) (Path, bool) {
	out := m.out.take()
	if out == nil {
		return Path{}, false
	}
	copy(buf[:MADLen], out.mad[:])
	return out.to, true
}

// send queues a message without keeping it.
func (m *Machine) send(to *Path, tid uint64, msg message) {
	if out := m.out.add(); out != nil {
		out.to = *to
		putMessage(out.mad[:], tid, msg)
		m.count.Inc(txMsgs(msg.attribute()))
		return
	}
	m.count.Inc(OutboxFull)
}

// sendKept queues a message and keeps it with its connection, to be repeated.
func (m *Machine) sendKept(c *conn, tid uint64, msg message) {
	c.kept = msg.attribute()
	putMessage(c.mad[:], tid, msg)
	m.count.Inc(txMsgs(c.kept))
	m.post(&c.path, &c.mad)
}

// repeat queues what the connection kept once more.
func (m *Machine) repeat(c *conn) {
	if c.kept != 0 {
		m.count.Inc(txRetries(c.kept))
		m.post(&c.path, &c.mad)
	}
}

// post queues a finished MAD.
func (m *Machine) post(to *Path, mad *[MADLen]byte) {
	if out := m.out.add(); out != nil {
		out.to, out.mad = *to, *mad
		return
	}
	m.count.Inc(OutboxFull)
}
