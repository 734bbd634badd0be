package engine

// The locks of a device, in the order in which they are taken; who holds one takes none
// before it:
//
//	services              services.life, then services.running, while one is called
//	those of services     what a Service has of its own, as the connection manager
//	MR.mu, CQ.wake.mu     of one object, while it is changed or waited for
//	Device.memberships    the membership in multicast groups, here and in the kernel;
//	                      it may be held for as long as the kernel takes
//	Device.life           the life of objects: create, close, who uses what, and the
//	                      tables that queues read without a lock (QPs, groups, handlers);
//	                      with all progress locks, on which queue a QP lives
//	Device.steering.mu    what the XDP program lets through
//	queue.mu              the progress locks, those of several queues in the order of
//	                      Device.queues: packets, and the state of QPs
//	all others            of what raises events (channels, asyncEvents), the path
//	                      table, the registry, the doorbells and inbox of a queue,
//	                      the FLUSHes under way, and those of package roce; under
//	                      these, none, but of a native port that of its counters
//
// A progress lock may be held by somebody who sleeps in direct mode, in CQ.Wait: queue.lock
// wakes it. The goroutine that stands by sleeps without: standby.link comes before that lock.

// lock takes the progress lock for a moment. Whoever sleeps with it, in direct mode, is
// woken, and does not sleep again before: it announces its sleep, and looks at callers
// after that.
func (q *queue) lock() {
	if q.mu.TryLock() {
		return
	}
	q.callers.Add(1)
	defer q.callers.Add(-1)
	if q.sleeping.Load() > 0 {
		q.link.Wake()
	}
	q.mu.Lock()
}

// pass takes the progress lock and gives it back: what was stored under it is seen. It wakes nobody
// who sleeps with it.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
}

// lock takes the life lock and every progress lock: nothing moves.
func (d *Device) lock() {
	d.life.Lock()
	d.lockQueues()
}

func (d *Device) unlock() {
	d.unlockQueues()
	d.life.Unlock()
}

// lockQueues takes every progress lock.
func (d *Device) lockQueues() {
	for _, q := range d.queues {
		q.lock()
	}
}

func (d *Device) unlockQueues() {
	for _, q := range d.queues {
		q.mu.Unlock()
	}
}

// quiesce waits until what looked a key up before has done its work. All that does happens under
// the progress lock of some queue, so passing through each once is waiting for that; what a poll is
// about to write is written after it. What queues remember of keys is forgotten: it keeps memory.
func (d *Device) quiesce() {
	for _, q := range d.queues {
		q.lock()
		q.common.ForgetKeys()
		q.mu.Unlock()
	}
	d.keys.WriteBack()
}

// wakeLinks ends the wait in each link, or the next one.
func (d *Device) wakeLinks() {
	for _, q := range d.queues {
		q.link.Wake()
	}
}
