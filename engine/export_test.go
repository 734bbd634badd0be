package engine

import (
	"slices"

	"xroce/bpf"
	"xroce/xsk"
)

// OpenLinks is OpenLink of a device with a queue for each link.
func OpenLinks(links []xsk.Link, host Host, o Options) (*Device, error) {
	return openDevice(links, host, nil, o)
}

// QueueOf returns the index of the queue that a QP lives on.
func QueueOf(q *QP) int { return slices.Index(q.device().queues, q.home()) }

// LockQueue takes the progress lock of a queue, and returns what gives it back.
func LockQueue(d *Device, i int) (unlock func()) {
	d.queues[i].mu.Lock()
	return d.queues[i].mu.Unlock
}

// HandoverOf returns what a queue has handed over to others, and what they had no room for.
func HandoverOf(d *Device, i int) (frames, noRoom uint64) {
	q := d.queues[i]
	q.lock()
	defer q.mu.Unlock()
	return q.handover.frames, q.handover.noRoom
}

// LookForMissed returns what looks for packets that came on a queue without a socket.
func LookForMissed(d *Device) (look func()) {
	m := &missed{}
	return func() { m.look(d) }
}

// SeeMissed has a device see, one after the other, how many such packets there are.
func SeeMissed(d *Device, packets ...uint64) {
	m := &missed{}
	for _, n := range packets {
		m.see(d, n)
	}
}

// CountQueues has Open learn the number of receive queues of an interface from count.
func CountQueues(o *Options, count func(iface string) (int, error)) { o.countQueues = count }

// AwaitsQueue reports whether somebody waits for the progress lock of a queue.
func AwaitsQueue(d *Device, i int) bool { return d.queues[i].callers.Load() > 0 }

// ProgramCounters are the counters of the XDP program of a device.
func ProgramCounters(d *Device) (bpf.Counters, error) { return d.program.Counters() }

// PagesAwaited reports whether pages are being brought in for a device.
func PagesAwaited(d *Device) bool { return d.paging.pager.Busy() }

// Away reports whether the driver of a device has left its queue to callers.
func Away(d *Device) bool { return d.queues[0].turns.away.Load() }

// CallerDrives reports whether a caller has the turn.
func CallerDrives(d *Device) bool { return d.queues[0].turns.driving.Load() }

// Reopenable is a link with a way to open it again after it failed, or when changed says that it
// is to be.
func Reopenable(
	link xsk.Link, again func() (xsk.Link, error), changed func(xsk.Info) error,
) xsk.Link {
	return reopenable{Link: link, again: again, changed: changed}
}
