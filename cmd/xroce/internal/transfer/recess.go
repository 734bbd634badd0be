package transfer

import "time"

// Recesses are times in which a guest waits for us, and that do not count of it. Else who goes on
// with a large file would be slow by what we read of it. Nobody is to keep a place for ever by
// having us do things over and over on a connection: a long recess is owed, in bytes that make a
// transfer which is just not slow, and there is none for another file until these have come. Who
// connects anew owes nothing, and may be passed by another one at the door.
type recesses struct {
	owed int64 // bytes
	none bool  // for this file
}

// shortRecess is what is not owed: who sends many small files has a short one with each.
const shortRecess = time.Second

// recess does something that a guest, which may be nil, waits for. Meanwhile it gives way as it did
// just before.
func (g *Guest) recess(do func() error) error {
	if g == nil || !g.beginRecess() {
		return do()
	}
	defer g.endRecess()
	return do()
}

// beginRecess begins a recess if there is to be one, and reports whether it did.
func (g *Guest) beginRecess() bool {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	if g.rest.none {
		return false
	}
	g.pace.stop(g.lobby.time())
	return true
}

// endRecess ends it.
func (g *Guest) endRecess() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	away := g.pace.goOn(g.lobby.time())
	g.since = g.since.Add(away)
	g.rest.owed += int64(max(0, away-shortRecess).Seconds() * float64(g.lobby.Slow))
}

// repay takes note of bytes that came.
func (r *recesses) repay(bytes int64) { r.owed = max(0, r.owed-bytes) }

// next is ready for another file.
func (r *recesses) next() { r.none = r.owed > 0 }
