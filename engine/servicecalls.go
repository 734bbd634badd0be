package engine

import (
	"slices"

	"xroce/roce"
)

// This file calls a service.

// run makes the calls for which it is time, and reports whether there may be more to do
// at once. The caller holds services.running.
func (h *ServiceHandle) run(now roce.Time) (worked bool) {
	if h.pending.Swap(false) {
		worked = true
		if h.service.HandleCompletions(now) {
			h.pending.Store(true)
		}
	}
	if at, ok := h.service.NextDeadline(); ok && at <= now {
		h.service.HandleDeadline(now)
		worked = true
	}
	h.deadline, h.armed = h.service.NextDeadline()
	return worked
}

// due reports whether it is time for a call. The caller holds services.running.
func (h *ServiceHandle) due(now roce.Time) bool {
	return h.pending.Load() || (h.armed && h.deadline <= now)
}

// dueAt returns when the next call is due, false for never.
func dueAt(list []*ServiceHandle, now roce.Time) (at roce.Time, any bool) {
	for _, h := range list {
		switch {
		case h.pending.Load():
			return now, true
		case h.armed && (!any || h.deadline < at):
			at, any = h.deadline, true
		}
	}
	return at, any
}

// without returns the list without a handle.
func without(list []*ServiceHandle, h *ServiceHandle) []*ServiceHandle {
	return slices.DeleteFunc(slices.Clone(list), func(x *ServiceHandle) bool { return x == h })
}
