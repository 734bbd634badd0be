package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/mem"
)

// A line is one end of a reliable connection with all that it needs.
type line struct {
	station *Station
	pd      *engine.PD
	cq      *engine.CQ
	mrs     []*engine.MR
	qp      *engine.QP // nil when it is the manager's
	conn    *cm.Conn
}

// newLine makes a line to be connected, with room for some completions.
func (s *Station) newLine(depth int) (*line, error) {
	l := &line{station: s, pd: s.Dev.AllocPD()}
	var err error
	if l.cq, err = s.Dev.CreateCQ(depth); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// register makes a region of n bytes, at least 1.
func (l *line) register(n int, access mem.Access) (*engine.MR, error) {
	mr, err := l.station.Dev.RegMR(l.pd, make([]byte, max(n, 1)), access)
	if err == nil {
		l.mrs = append(l.mrs, mr)
	}
	return mr, err
}

// init is the queue pair of a line with room for some sends and receives.
func (l *line) init(sends, receives int) engine.QPInit {
	return engine.QPInit{
		SendCQ: l.cq, RecvCQ: l.cq, MaxSendWR: sends, MaxRecvWR: receives,
		MaxSendSGE: 1, MaxRecvSGE: 1, SignalAll: true,
	}
}

// next waits for a completion. When the peer has hung up the error wraps
// cm.ErrHungUp.
func (l *line) next(ctx context.Context) (roce.Completion, error) {
	var wcs [1]roce.Completion
	if err := l.station.await(ctx, l.cq, wcs[:]); err != nil {
		return roce.Completion{}, err
	}
	wc := wcs[0]
	if wc.Status == roce.StatusWRFlushErr {
		// The manager says why before it flushes.
		if err := l.conn.Err(); err != nil {
			return wc, fmt.Errorf("the peer hung up: %w", err)
		}
	}
	return wc, wc.Err()
}

// hungUp reports whether an error says that the peer ended the connection in order.
func hungUp(err error) bool { return errors.Is(err, cm.ErrHungUp) }

// lingerTime is how long hanging up takes at most: longer than it takes to send a
// lost DREQ again.
const lingerTime = 6 * time.Second

// hangUp ends the connection and waits until both ends know: a manager that is
// closed at once may not get its last word out.
func (l *line) hangUp(ctx context.Context) {
	l.conn.Close()
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	select {
	case <-l.conn.Released():
	case <-ctx.Done():
	}
}

// abandon ends the connection, if there is one, waits for nobody and gives all back: what is left
// of it until both ends know are numbers of the manager.
func (l *line) abandon() {
	if l.conn != nil {
		l.conn.Destroy()
	}
	l.free()
}

// Bounds of those who are answered beside those that are wanted.
const (
	maxSpare   = 64
	spareBytes = 64 << 20
)

// sparePlaces is how many more may ask at a time, each of whom costs so many bytes: who asks may
// not be there.
func sparePlaces(bytes int) int { return min(max(spareBytes/max(bytes, 1), 1), maxSpare) }

// free gives back what a line has whose queue pair nobody needs any more. All that an
// error could say is that something is in use, which the end of the device settles.
func (l *line) free() {
	if l.qp != nil {
		l.qp.Close()
	}
	for _, mr := range l.mrs {
		_ = mr.Deregister()
	}
	if l.cq != nil {
		_ = l.cq.Close()
	}
	_ = l.pd.Close()
}
