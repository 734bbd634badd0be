package engine

// SendPosted makes a round of progress, in direct mode, on each queue that was posted to and that
// nobody else drives just now: what was posted leaves at once, and not when somebody polls. It
// does nothing when a background driver does it.
func (d *Device) SendPosted() {
	if !d.direct {
		return
	}
	for _, q := range d.queues {
		if q.doorbells.count.Load() > 0 && q.mu.TryLock() {
			q.progress()
			q.mu.Unlock()
		}
	}
}
