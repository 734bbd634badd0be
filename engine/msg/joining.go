package msg

import (
	"context"

	"xroce/roce/msg"
)

// A berth is what a further rail of a connection joins: the connection, and the number that the
// peer has for the rail.
type berth struct {
	conn *msg.Conn
	rail uint8
}

// A joining is what is under way at a berth: an attempt, and who has dialled since.
type joining struct {
	giveWay context.CancelFunc // of the attempt
	next    *guest             // nil for nobody
}

// join takes a further rail. Who names a session has a secret of it, and does not stand in the room
// with strangers: nobody may ever accept those, and a rail that is lost could not come back. What
// it can hold is an attempt of each of its own rails, since a peer that dials one again has given
// up the attempt before. It does not wait. It is called by who is of under.
func (l *lobby) join(g *guest) {
	e := l.endpoint
	e.mu.Lock()
	core, err := e.machine.Session(&g.theirs)
	e.mu.Unlock()
	if err != nil {
		l.refuse(g, err)
		return
	}
	at := berth{core, g.theirs.Rail}
	if away, busy := l.queue(at, g); busy {
		if away != nil {
			l.refuse(away, errNoPlace)
		}
		return
	}
	l.under.Go(func() {
		for ctx := l.moor(at, &g); ctx != nil; ctx = l.moor(at, &g) {
			if l.ctx.Err() != nil {
				l.refuse(g, ErrClosed)
				continue
			}
			e.admitRail(ctx, g.nic, g.request, &g.theirs)
		}
	})
}

// queue makes somebody the next at a berth, and has the attempt there end. It returns who was the
// next before. When nothing is under way he is, and it reports that it was not busy.
func (l *lobby) queue(at berth, g *guest) (away *guest, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.joining[at]
	if busy = j != nil; !busy {
		j = &joining{giveWay: func() {}}
		l.joining[at] = j
	}
	away, j.next = j.next, g
	j.giveWay()
	return away, busy
}

// moor begins the attempt of who is the next at a berth, which it tells. Its context ends when he
// is to give way. It is nil when there is nobody, and then nothing is under way there any more.
func (l *lobby) moor(at berth, who **guest) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.joining[at]
	j.giveWay() // the attempt before is over
	if j.next == nil {
		delete(l.joining, at)
		return nil
	}
	*who, j.next = j.next, nil
	ctx, cancel := context.WithCancel(l.ctx)
	j.giveWay = cancel
	return ctx
}
