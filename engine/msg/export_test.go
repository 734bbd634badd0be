package msg

// LeaveToCallers has nobody move messages but those who wait for one.
func (e *Endpoint) LeaveToCallers() { e.closeHandles() }
