package transfer

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// roomTime is how long a file waits for room that others give back: longer than it takes to find
// out that one who has just begun is slow, and not as long as a client waits for an answer.
const roomTime = slowGrace + time.Second

// roomLook is how long it waits at most before it looks again who is slow.
const roomLook = time.Second / 4

// findRoom finds room for a want. Where there is none because of what is set aside for guests that
// are slow, or may be, it hangs up on as many as are needed and waits for what they give back;
// who comes meanwhile does not get that. ErrBusy says that it takes longer. The caller holds mu,
// which is let go meanwhile.
func (s *Store) findRoom(ctx context.Context, w *want) error {
	s.wants = append(s.wants, w)
	defer func() {
		s.wants = slices.DeleteFunc(s.wants, func(o *want) bool { return o == w })
		if len(s.wants) > 0 {
			s.wake()
		}
	}()
	err := s.makeRoom(w)
	if err == nil || !s.hurry(w) && !s.stale(w) {
		return err
	}
	for end := time.Now().Add(s.roomTime); time.Now().Before(end); {
		freed := s.freed
		s.mu.Unlock()
		_ = await(ctx, freed, nil, roomLook) // whether or not, it looks again
		s.look(w)
		s.mu.Lock()
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err = s.makeRoom(w); err == nil || !s.hurry(w) && !s.stale(w) {
			return err
		}
	}
	return fmt.Errorf("%w: its room is set aside for files that are coming, try again later",
		ErrBusy)
}

// stale reports whether there may be room for a want after all, if one looks again: what was
// written since it was looked may have been in what the file system said. The caller holds mu.
func (s *Store) stale(w *want) bool {
	now := *w
	now.written = s.written[w.dev]
	return s.fits(w, s.reclaimable(w.dev).minus(s.ahead(w))) != nil &&
		s.fits(&now, s.reclaimable(w.dev).minus(s.ahead(w))) == nil
}

// ahead is what those ask for that waited for room before a want did. The caller holds mu.
func (s *Store) ahead(w *want) (g gain) {
	for _, o := range s.wants {
		if o == w {
			break
		}
		g = g.plus(o.costs().at(w.dev, o.dev))
	}
	return g
}

// hurry hangs up on guests that are slow, those that hold most first, until what they hold is
// enough for a want, and reports whether there is anything to wait for. Nobody is hung up on for
// what there is no room for all the same. The caller holds mu.
func (s *Store) hurry(w *want) bool {
	var slow []*holding
	var leaving, yielding, perhaps gain
	for _, h := range s.coming {
		if h == w.has {
			continue
		}
		switch more := h.at(w.dev, h.dev); h.guest.standing() {
		case departed:
			leaving = leaving.plus(more)
		case slowNow:
			slow, yielding = append(slow, h), yielding.plus(more)
		case young:
			perhaps = perhaps.plus(more)
		case stays:
		}
	}
	room, ahead := s.reclaimable(w.dev).plus(leaving), s.ahead(w)
	if s.fits(w, room.plus(yielding).minus(ahead)) != nil {
		// Those that wait, too, may go without.
		return s.fits(w, room.plus(yielding).plus(perhaps)) == nil
	}
	slices.SortStableFunc(slow, func(a, b *holding) int { return cmp.Compare(b.total, a.total) })
	for _, h := range slow {
		err, more := s.fits(w, room.minus(ahead)), h.at(w.dev, h.dev)
		if err == nil {
			break
		}
		if helps(err, more.free) && h.guest.giveWay() {
			room = room.plus(more)
		}
	}
	return true
}

// letOthersFirst puts those of a host that wait for room behind all others: what one connection of
// it gives back is not for the next one. The caller holds mu.
func (s *Store) letOthersFirst(host netip.Prefix) {
	rank := func(w *want) int {
		if w.has != nil && w.has.guest != nil && w.has.guest.source == host {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(s.wants, func(a, b *want) int { return cmp.Compare(rank(a), rank(b)) })
}

// wake has those look again who wait for room. The caller holds mu.
func (s *Store) wake() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// hold takes note that room is set aside for a file. The caller holds mu.
func (s *Store) hold(h *holding) {
	if !slices.Contains(s.coming, h) {
		s.coming = append(s.coming, h)
	}
}

// letGo takes note that nothing is set aside any more for a file, which may be nil: it is there,
// or does not come. The caller holds mu.
func (s *Store) letGo(h *holding) {
	if h != nil {
		s.coming = slices.DeleteFunc(s.coming, func(o *holding) bool { return o == h })
		if h.guest.standing() == departed { // it held that for nothing
			s.letOthersFirst(h.guest.source)
		}
	}
	s.wake()
}

// abandoned is letGo for a caller who does not hold mu.
func (s *Store) abandoned(h *holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letGo(h)
}
