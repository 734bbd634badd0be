package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/host"
	"xroce/roce"
	"xroce/xsk"
)

// This file is about links that fail and come back: the driver of the card was reset, its number
// of queues or the size of its rings was changed, somebody took the queue. What the kernel says
// then, EINVAL, ENXIO, EIO, EBUSY, ENODEV or ENOBUFS, does not tell these from an interface that is
// gone. So the link is taken out and opened again, as often as it takes, and only when there is
// no such interface any more it is the end. To QPs it is a loss of packets. The peer sees one, too,
// and its retries count; ours do not while it is our link that fails, for resetPatience.
//
// The frames of a link that failed are its own: whatever the engine had reserved there is
// forgotten, and the next link begins with all of its frames.

const (
	// resetPause is how long the link is left alone after the first try to open it again. It
	// doubles with each.
	resetPause = 10 * time.Millisecond
	// maxResetPause bounds that.
	maxResetPause = time.Second
	// resetPatience is for how long nobody is to blame for an answer that does not come.
	resetPatience = 5 * roce.Second
)

// A linkReset is the making anew of a link.
type linkReset struct {
	since roce.Time
	// hurry ends a pause: something has changed that may help. It has room for one.
	hurry chan struct{}
}

// resetCounts count what a device has survived.
type resetCounts struct {
	links, linkTries     atomic.Uint64
	detached, reattached atomic.Uint64
	mtuChanges           atomic.Uint64
}

// counters lists them.
func (c *resetCounts) counters() []Counter {
	return []Counter{
		{"link_error_recovery", c.links.Load(), "events", "times a lost socket was made anew"},
		{"link_reset_tries", c.linkTries.Load(), "tries", "to make a lost socket anew"},
		{"xdp_detached", c.detached.Load(), "events", "times somebody detached the XDP program"},
		{"xdp_reattached", c.reattached.Load(), "events", "times it was attached again"},
		{"mtu_changes", c.mtuChanges.Load(), "events", "times the MTU of the interface changed"},
	}
}

// lose takes the link out because of an error, and has it made anew. It reports false where that
// is not possible. The caller holds mu.
func (q *queue) lose(err error) bool {
	if q.link.again == nil || errors.Is(err, xsk.ErrClosed) {
		return false
	}
	if q.reset != nil || q.err != nil {
		return true
	}
	d := q.device
	q.forgetFrames()
	q.keepStats()
	q.outage = nil
	q.reset = &linkReset{since: q.clock.Now(), hurry: make(chan struct{}, 1)}
	old, reset := q.link.take(), q.reset
	d.raise(AsyncEvent{Type: roce.EventPortErr})
	d.watching.Go(func() { d.remake(q, reset, old, err) })
	return true
}

// forgetFrames drops the transmit frames that are reserved, of a link that is not used any more.
// The caller holds mu.
func (q *queue) forgetFrames() {
	clear(q.tx[q.txFrom:q.txHave])
	q.txFrom, q.txHave = 0, 0
	q.txDelay.open = false
}

// keepStats keeps the counters of a link that is about to be taken out. What cannot be read any
// more is missing. The caller holds mu.
func (q *queue) keepStats() {
	stats, err := q.link.Stats()
	if err != nil {
		return
	}
	stats.TxOutstanding = 0
	for i, c := range linkCounters {
		q.past[i] += c.value(&stats)
	}
}

// remake opens a link again until it works, and puts it into its queue.
func (d *Device) remake(q *queue, reset *linkReset, old xsk.Link, cause error) {
	log := d.options.Logger.With("device", d.Name(), "queue", old.Info().Queue)
	log.Warn("the socket is lost, and is made anew", "error", cause)
	if err := q.link.closeAside(old); err != nil {
		log.Warn("a lost socket is not given back", "error", err)
	}
	said := cause.Error()
	for pause := resetPause; ; pause = min(2*pause, maxResetPause) {
		d.resets.linkTries.Add(1)
		link, err := d.reopen(q)
		if err == nil {
			if d.replace(q, link) {
				log.Info("the socket works again",
					"after", time.Duration(q.clock.Now()-reset.since))
			}
			return
		}
		if final := d.finalReset(err); final != nil {
			q.lock()
			q.fail(final)
			q.mu.Unlock()
			return
		}
		if text := err.Error(); text != said {
			log.Warn("the socket cannot be made anew yet", "error", err)
			said = text
		}
		if errors.Is(err, errNoQueue) {
			d.moves.leave(q)
		}
		if !d.pauseReset(reset, &pause) {
			return
		}
	}
}

// pauseReset waits before the next try. When something has changed that may help it is sooner.
// It reports false when the device has ended.
func (d *Device) pauseReset(reset *linkReset, pause *time.Duration) bool {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-reset.hurry:
		*pause = resetPause / 2 // the caller doubles it
		d.pause(resetPause)
	case <-d.failed:
	}
	return !d.Failed()
}

// reopen opens the link of a queue again.
func (d *Device) reopen(q *queue) (link xsk.Link, err error) {
	err = d.inNamespace(func() error {
		link, err = q.link.again()
		return err
	})
	return link, err
}

// inNamespace runs f in the network namespace of the interface.
func (d *Device) inNamespace(f func() error) error {
	if n, ok := d.host.(host.Namespaced); ok {
		return n.Do(f)
	}
	return f()
}

// finalReset returns why a device ends whose link cannot be opened with an error, nil when it may
// come back.
func (d *Device) finalReset(err error) error {
	switch {
	case errors.Is(err, unix.ENODEV), errors.Is(err, fs.ErrNotExist):
		return d.errRemoved()
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("engine: the link failed, and may not be made anew: %w", err)
	}
	return nil
}

// replace puts a link that was made anew into its queue. It reports false when the device has
// ended meanwhile; then the link is closed.
func (d *Device) replace(q *queue, link xsk.Link) bool {
	q.lock()
	defer q.mu.Unlock()
	if q.err != nil {
		_ = link.Close() // there is nobody to tell
		return false
	}
	q.forgetFrames()
	q.reset, q.outage = nil, nil
	q.link.put(link)
	q.link.Wake()
	q.link.rouse()
	q.fitFrames()
	q.tellMTU()
	d.resets.links.Add(1)
	d.raise(AsyncEvent{Type: roce.EventPortActive})
	return true
}

// fitFrames makes room for the frames of a link, which may be longer than those of the last one.
// The caller holds mu.
func (q *queue) fitFrames() {
	longest := q.link.Info().MaxFrame
	if longest <= q.loop.room {
		return
	}
	q.loop.room = longest
	// QPs that are connected keep the pool that they have: their path MTU is the old one.
	q.common.EarlyPool = roce.NewEarlyPool(earlyPackets, longest)
}

// hurry has a link that is made anew tried again soon. The caller holds mu.
func (q *queue) hurry() {
	if q.reset == nil {
		return
	}
	select {
	case q.reset.hurry <- struct{}{}:
	default:
	}
}

// excused reports whether the silence of a peer is our own: the link was lost not long ago.
func (q *queue) excused(now roce.Time) bool {
	return q.reset != nil && now-q.reset.since < resetPatience
}
