package msg

import (
	"errors"
	"slices"

	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/msg"
)

// A service is an endpoint as the device calls it.
type service struct {
	*Endpoint
	of *nic
}

// batches is how often completions are taken from the CQ in one call.
const batches = 16

// HandleCompletions implements engine.Service.
func (e service) HandleCompletions(roce.Time) (more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	switch {
	case !e.drive.unarmed:
		more = e.poll()
	case len(e.hangUps) > 0, len(e.parting) > 0:
		more = e.drain()
	}
	if !more {
		e.endHungUp()
	}
	e.endParting(func(r *rail) bool { return !more || r.nic.taken >= r.until })
	e.progress(e.dev.Now())
	e.repay()
	return more
}

// endHungUp ends the connections whose peers have hung up, now that all that had come is taken.
// The caller holds mu.
func (e *Endpoint) endHungUp() {
	for _, r := range e.hangUps {
		r.core.Lose(e.dev.Now(), r.cm.Err())
	}
	clear(e.hangUps)
	e.hangUps = e.hangUps[:0]
}

// endParting has those rails closed of which all was taken that is complete, as over says. The
// caller holds mu.
func (e *Endpoint) endParting(over func(*rail) bool) {
	e.parting = slices.DeleteFunc(e.parting, func(r *rail) bool {
		if !over(r) {
			return false
		}
		close(r.taken)
		return true
	})
}

// NextDeadline implements engine.Service.
func (e service) NextDeadline() (roce.Time, bool) {
	if !e.attend() {
		return e.dev.Now() + driverPause, true
	}
	defer e.mu.Unlock()
	e.due, e.waits = e.machine.NextDeadline()
	if e.err == nil && e.drive.unarmed && (!e.waits || e.drive.due() < e.due) {
		e.due, e.waits = e.drive.due(), true
	}
	return e.due, e.waits
}

// HandleDeadline implements engine.Service.
func (e service) HandleDeadline(now roce.Time) {
	if !e.attend() {
		return
	}
	defer e.mu.Unlock()
	if e.err == nil {
		e.machine.HandleDeadline(now)
		e.relieve(now)
		e.progress(now)
	}
}

// HandleFailure implements engine.Service. What had come by the device before is looked at first:
// it was acknowledged, so the peer does not send it again by another one.
func (e service) HandleFailure(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for n := 1; n > 0 && e.err == nil && e.of.err == nil; {
		_, n = e.takeFrom(0, e.of)
	}
	e.lose(e.of, err)
}

// poll takes what is complete, a bounded part of it, and reports whether there may be more. When
// there is not the CQ is armed. The caller holds mu.
func (e *Endpoint) poll() (more bool) {
	for range batches {
		if e.err != nil {
			return false
		}
		if _, n := e.take(0); n == 0 && !e.armAll() {
			return false
		}
	}
	return true
}

// drain is poll while callers take completions, so that nothing is armed.
func (e *Endpoint) drain() (more bool) {
	for range batches {
		if e.err != nil {
			return false
		}
		if _, n := e.take(0); n == 0 {
			return false
		}
	}
	return true
}

// take takes some of what is complete, and returns how many and, if there were any, the time. That
// is the given one, unless it is 0: whoever has just looked at the clock saves that here. It moves
// no packets. The caller holds mu.
func (e *Endpoint) take(at roce.Time) (now roce.Time, n int) {
	for _, from := range e.nics {
		if from.err != nil {
			continue
		}
		if then, m := e.takeFrom(at, from); m > 0 {
			now, n = then, n+m
		}
	}
	return now, n
}

// takeFrom is take of a device.
func (e *Endpoint) takeFrom(at roce.Time, from *nic) (now roce.Time, n int) {
	n, err := from.cq.Take(e.wcs[:])
	if n == 0 && err == nil {
		return 0, 0
	}
	if now = at; now == 0 {
		now = e.now()
	}
	e.seen = now
	from.taken += uint64(n)
	for i := range e.wcs[:n] {
		wc := &e.wcs[i]
		r := from.railOf(wc.QPN)
		switch {
		case r == nil: // its queue pair is closed
		case r.core == nil:
			r.early = append(r.early, *wc)
		default:
			r.take(now, wc)
		}
	}
	if err != nil {
		e.lose(from, err)
	}
	return now, n
}

// progress does what the machine wants done now, and tells who waits. The caller holds mu.
func (e *Endpoint) progress(now roce.Time) {
	if len(e.probes) > 0 {
		e.answerProbes()
	}
	e.postWork(now)
	for r := e.machine.NextLost(); r != nil; r = e.machine.NextLost() {
		r.User.(*rail).leave()
	}
	for r := e.machine.NextRequest(); r != nil; r = e.machine.NextRequest() {
		e.memory.ask(r)
	}
	// Before what fails with it: who is told of that may ask the connection for the reason.
	closed := false
	for c := e.machine.NextClosed(); c != nil; c = e.machine.NextClosed() {
		c.User.(*Conn).over(c.Err())
		closed, e.alarm.happens = true, true
	}
	if closed && len(e.probes) > 0 {
		e.answerProbes() // who looks for a message of them
	}
	for s := e.machine.NextSent(); s != nil; s = e.machine.NextSent() {
		switch u := s.User.(type) {
		case *Send:
			u.complete(s)
			e.alarm.happens = true
		case *injection:
			u.conn.giveInjection(u)
		}
	}
	for r := e.machine.NextReceived(); r != nil; r = e.machine.NextReceived() {
		switch u := r.User.(type) {
		case *Receive:
			u.complete(r)
			e.alarm.happens = true
		case *delivery:
			u.complete()
		}
	}
	for x := e.machine.NextRMA(); x != nil; x = e.machine.NextRMA() {
		x.User.(*access).progress.end()
	}
	for c := e.machine.NextMoved(); c != nil; c = e.machine.NextMoved() {
		c.User.(*Conn).stream.wake()
	}
	if e.alarm.on {
		e.alarm.check(e.machine.Unmatched())
	}
	if at, ok := e.machine.NextDeadline(); ok && (!e.waits || at < e.due) {
		e.due, e.waits = at, true
		e.wakeAll() // nobody asks for it outside of handlers
	}
	if e.drive.asleep {
		e.dev.Rouse() // what it waits for may be over
	}
}

// postWork posts what the machine wants to be posted, and reports whether that was anything. The
// caller holds mu.
func (e *Endpoint) postWork(now roce.Time) (any bool) {
	for r := e.machine.NextWork(now, &e.wr); r != nil; r = e.machine.NextWork(now, &e.wr) {
		any = true
		if err := r.User.(*rail).qp.PostSend(&e.wr); err != nil {
			r.Lose(e.now(), err)
		}
	}
	return any
}

// end ends everything. The caller holds mu.
func (e *Endpoint) end(err error) {
	e.err = err
	e.endParting(func(*rail) bool { return true })
	now := e.dev.Now()
	for c := range e.conns { // also those of which no rail is left, and that wait for one
		c.core.Abort(now, err)
	}
	for s := range e.streams {
		s.conn.core.HangUp(now, 0)
	}
	clear(e.streams)
	e.progress(now)
	e.alarm.ring()
	e.changed.Broadcast()
	close(e.done)
}

// take hands a completion of a rail to the machine.
func (r *rail) take(now roce.Time, wc *roce.Completion) {
	e := r.conn.endpoint
	if wc.Status != roce.StatusSuccess && !r.core.Lost() && r.qp.Snapshot().BadKey {
		// Else all that is known is that work was flushed.
		e.machine.HandleBadKey(now, r.core)
	}
	if wc.Status == roce.StatusWRFlushErr && !r.core.Lost() &&
		errors.Is(r.cm.Err(), cm.ErrLargeLost) {
		r.core.Lose(now, r.cm.Err()) // else all that is known is that it was flushed, too
	}
	if wc.WRID&receiveID == 0 {
		e.machine.HandleWork(now, r.core, wc)
		return
	}
	slot := int(wc.WRID &^ receiveID)
	var control []byte
	if wc.Status == roce.StatusSuccess && wc.Opcode == roce.WCRecv {
		control = append(r.scratch[:0], r.slot(slot)[:wc.ByteLen]...)
	}
	if wc.Status == roce.StatusSuccess {
		_ = r.owe(slot) // only the end of the queue pair can refuse it, which is told
	}
	e.machine.HandleArrival(now, r.core, wc, control)
}

// receiveID marks the work request IDs of receives.
const receiveID = 1 << 63

// slotLen is the length of a receive: a control message.
const slotLen = msg.MaxControlLen

// slot is the memory of a receive.
func (r *rail) slot(i int) []byte { return r.control.Bytes()[i*slotLen:][:slotLen] }

// lateReceives is how many receives a rail has beyond those that the peer may count on, and so how
// many may wait to be posted again.
const lateReceives = 8

// owe notes a receive that is to be posted again: behind what is answered to what came, or when no
// further one may wait. The caller holds the endpoint's lock.
func (r *rail) owe(i int) error {
	n := len(r.owed)
	r.sges[n] = r.control.SGE(i*slotLen, slotLen)
	r.owed = append(r.owed, roce.RecvWR{WRID: receiveID | uint64(i), SGList: r.sges[n : n+1]})
	switch e := r.conn.endpoint; len(r.owed) {
	case lateReceives / 2:
		if !r.owing {
			r.owing = true
			e.owing = append(e.owing, r)
		}
	case lateReceives:
		return r.repay()
	}
	return nil
}

// repay posts the receives that wait. The caller holds the endpoint's lock.
func (r *rail) repay() error {
	if len(r.owed) == 0 {
		return nil
	}
	_, err := r.qp.PostRecvs(r.owed)
	r.owed = r.owed[:0]
	return err
}

// repay has receives posted of rails of which several wait. The caller holds mu.
func (e *Endpoint) repay() {
	for i, r := range e.owing {
		_ = r.repay() // as above
		r.owing, e.owing[i] = false, nil
	}
	e.owing = e.owing[:0]
}
