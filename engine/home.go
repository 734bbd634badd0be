package engine

// home is the queue that the QP lives on. Who holds neither the life lock nor the progress lock of
// that queue may find it to be another one meanwhile.
func (q *QP) home() *queue { return q.at.Load() }

// lock takes the progress lock of the queue that the QP lives on, and returns that.
func (q *QP) lock() *queue {
	for {
		home := q.home()
		home.lock()
		if q.home() == home {
			return home
		}
		home.mu.Unlock() // it has moved
	}
}
