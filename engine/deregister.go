package engine

import (
	"errors"

	"xroce/roce/mem"
)

// Deregister takes the keys out of use. When it returns without an error, no packet
// reads or writes the memory any more; work requests that name it fail. It is
// idempotent, and waits for no peer and no work request, but for FLUSHes to persistence
// that are under way here. The error is ErrBusy, and
// mem.ErrBusy, while a memory window is bound to the region or a layout refers to it: then nothing
// happened.
func (m *MR) Deregister() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch err := m.device.keys.Deregister(m.core); {
	case errors.Is(err, mem.ErrNotRegistered):
		return nil
	case err != nil:
		return busy(err)
	}
	m.device.registry.remove(resourceMR, m, m.number)
	m.pd.release()
	m.quiesce()
	if m.odp != nil {
		m.device.forgetODP(m)
	}
	return m.own.release()
}

// Close is Deregister, by the name of io.Closer.
func (m *MR) Close() error { return m.Deregister() }
