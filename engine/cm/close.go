package cm

import (
	"time"

	"xroce/roce/cm"
)

// Close ends all connections. Peers that are connected are asked to confirm it, as
// often as they have to be, but for no longer than Options.Linger; requests that
// were not answered are refused, and what else is under way fails with ErrClosed.
// It is idempotent.
func (m *Manager) Close() error {
	m.once.Do(func() {
		m.mu.Lock()
		m.hangUp()
		m.mu.Unlock()
		m.await()
		m.end()
		m.cancel()
		m.endWork()
		_ = m.handle.Load().Close() // never fails
		m.running.Wait()
		m.failed = m.release()
	})
	return m.failed
}

// hangUp ends everything on our side, fails every call that waits, and begins to
// disconnect the peers. The caller holds mu.
func (m *Manager) hangUp() {
	if m.closed {
		return
	}
	m.closed, m.leaving = true, map[cm.ID]struct{}{}
	for id, l := range m.listeners {
		close(l.done)
		// It is there, so this cannot be refused.
		_ = m.machine.Unlisten(id)
		l.queue = nil
	}
	for _, r := range m.requests {
		r.fail(ErrClosed)
		m.giveUp(r)
		m.refuse(r.event)
	}
	for id, c := range m.conns {
		c.finish(ErrClosed)
		m.parting = append(m.parting, id)
	}
	for id := range m.resting {
		m.parting = append(m.parting, id)
	}
	for id, response := range m.lookups {
		close(response)
		// It is there, so this cannot be refused.
		_ = m.machine.CancelLookup(id)
	}
	clear(m.listeners)
	clear(m.lookups)
	m.dispatch()
	m.wake()
}

// part disconnects those peers that were not told yet, as many as there is room for in the
// send queue: a completion tells when there is more. The caller holds mu.
func (m *Manager) part() {
	for len(m.parting) > 0 {
		if m.transmit(); m.machine.Usage().MADs > 0 {
			return
		}
		id := m.parting[0]
		m.parting = m.parting[1:]
		// Only one that has ended meanwhile refuses it.
		_ = m.machine.Disconnect(m.clock.Now(), id, nil)
		if m.machine.State(id) == cm.StateDREQSent {
			m.leaving[id] = struct{}{}
		}
	}
}

// checkLeft closes left when no peer has to be told any more. The caller holds mu.
func (m *Manager) checkLeft() {
	r := &m.routes
	if !m.closed || len(m.parting) > 0 || len(m.leaving) > 0 || r.running > 0 ||
		len(r.ready) > 0 || m.machine.Usage().MADs > 0 {
		return
	}
	select {
	case <-m.left:
	default:
		close(m.left)
	}
}

// await waits until every peer was told, the device ended, or Options.Linger has
// passed.
func (m *Manager) await() {
	timer := time.NewTimer(m.linger)
	defer timer.Stop()
	select {
	case <-m.left:
	case <-m.ctx.Done():
	case <-timer.C:
	}
}

// end forgets all that is left.
func (m *Manager) end() {
	m.mu.Lock()
	if m.ended {
		m.mu.Unlock()
		return
	}
	m.hangUp() // when the device ended, Close has not been called
	m.ended = true
	m.mu.Unlock()
	m.drain()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.exit()
	}
	clear(m.conns)
	for _, released := range m.resting {
		close(released)
	}
	clear(m.resting)
	clear(m.requests)
}

// drain waits until the device has sent what was posted to QP 1, for a bounded time. It
// makes progress, so the caller does not hold mu.
func (m *Manager) drain() {
	const (
		rounds = 64                     // of progress, made here ...
		pause  = 100 * time.Microsecond // ... or by the driver, which needs a CPU for it
	)
	for range rounds {
		if m.qp.Snapshot().SendPosted == 0 {
			return
		}
		if !m.dev.Progress() {
			time.Sleep(pause)
		}
	}
}
