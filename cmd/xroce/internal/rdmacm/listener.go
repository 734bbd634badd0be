package rdmacm

import (
	"context"
	"net/netip"
	"sync"

	"xroce/engine/cm"
)

// A listener takes requests at one address or at all of the device.
type listener struct {
	of       []*cm.Listener
	requests chan *cm.Request // closed when the manager is
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// listen takes requests. Close must be called.
func (s *Station) listen(at netip.AddrPort) (*listener, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{requests: make(chan *cm.Request), cancel: cancel}
	for _, addr := range anyAddress(at) {
		one, err := s.Manager.Listen(addr)
		if err != nil {
			l.close()
			return nil, err
		}
		l.of = append(l.of, one)
		l.running.Go(func() { l.forward(ctx, one) })
	}
	go func() {
		l.running.Wait()
		close(l.requests)
	}()
	s.listening(at)
	return l, nil
}

// forward hands on the requests of a listener.
func (l *listener) forward(ctx context.Context, from *cm.Listener) {
	for {
		r, err := from.Accept(ctx)
		if err != nil {
			return
		}
		select {
		case l.requests <- r:
		case <-ctx.Done():
			// Who gave up need not be told.
			_ = r.Reject(nil)
			return
		}
	}
}

// accept waits for a request.
func (l *listener) accept(ctx context.Context) (*cm.Request, error) {
	select {
	case r, ok := <-l.requests:
		if !ok {
			return nil, cm.ErrClosed
		}
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close refuses who comes from now on. It is idempotent.
func (l *listener) close() {
	l.cancel()
	l.running.Wait()
	for _, one := range l.of {
		one.Close()
	}
}
