package message

import (
	"cmp"
	"context"
	"net/netip"
	"sync"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/msg"
)

// meet makes all connections, and agrees over each on what is to come before the next is made.
func (r *run) meet(ctx context.Context) error {
	if r.config.Server {
		var err error
		if r.door, err = r.listen(); err != nil {
			return err
		}
		if r.hooks.Listening != nil {
			r.hooks.Listening(r.config.Addr)
		}
		return r.receive(ctx)
	}
	for i := range r.config.Peers {
		within, cancel := ctx, func() {}
		if i > 0 {
			within, cancel = context.WithTimeoutCause(ctx, r.setup(), errSetup)
		}
		conn, err := r.dial(within)
		if err != nil {
			err = cause(within, err)
			cancel()
			return r.which(i, err)
		}
		cancel()
		r.links = append(r.links, &link{run: r, conn: conn})
		if err := r.agree(ctx, conn); err != nil {
			return r.which(i, err)
		}
	}
	return r.awaitRails(ctx)
}

// awaitRails waits until all connections have all rails: else a short test would measure what went
// before they came. One that cannot be connected to in time is left out, which is told.
func (r *run) awaitRails(ctx context.Context) error {
	if len(r.config.Further) == 0 {
		return nil
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	// The server hears nothing meanwhile, and must not give up.
	most := min(peer.Stretched(ctx, peer.ConnectTime), silenceTime/2)
	for end := time.Now().Add(most); time.Now().Before(end); {
		if up, rails := r.railsUp(); up == rails {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if up, rails := r.railsUp(); up < rails && r.hooks.Short != nil {
		r.hooks.Short(up, rails)
	}
	return nil
}

// railsUp is how many rails there are, and how many of them are up in all connections.
func (r *run) railsUp() (up, rails int) {
	states := r.railStates()
	for _, s := range states {
		if s.Up {
			up++
		}
	}
	return up, len(states)
}

// dial connects to the server.
func (r *run) dial(ctx context.Context) (conn *msg.Conn, err error) {
	to := r.config.Addr
	err = peer.Ask(ctx, to, cmp.Or(r.config.Dial, peer.ConnectTime),
		func(ctx context.Context) (err error) {
			conn, err = r.endpoint.Dial(ctx, to, r.config.Further...)
			return err
		})
	return conn, err
}

// A door is where a server takes connections: at an address of each device, or at all of it.
type door struct {
	rails   bool // there are several devices: further rails may come as long as it is open
	of      []*msg.Listener
	came    chan accepted
	full    chan struct{} // closed when nobody else is wanted
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// An accepted is a connection, or why there is none.
type accepted struct {
	conn *msg.Conn
	err  error
}

// listen opens the door. close must be called.
func (r *run) listen() (*door, error) {
	ctx, cancel := context.WithCancel(context.Background())
	further := r.config.Further
	d := &door{
		rails: len(further) > 0, came: make(chan accepted), full: make(chan struct{}),
		cancel: cancel,
	}
	at := [][]netip.AddrPort{append([]netip.AddrPort{r.config.Addr}, further...)}
	if r.config.Addr.Addr().IsUnspecified() {
		at = [][]netip.AddrPort{
			anywhere(netip.IPv4Unspecified(), at[0]), anywhere(netip.IPv6Unspecified(), at[0]),
		}
	}
	for _, addrs := range at {
		l, err := r.endpoint.Listen(addrs[0], addrs[1:]...)
		if err != nil {
			d.close()
			return nil, err
		}
		d.of = append(d.of, l)
		d.running.Go(func() { d.take(ctx, l) })
	}
	return d, nil
}

// anywhere are the ports of addresses, at another address.
func anywhere(addr netip.Addr, ports []netip.AddrPort) []netip.AddrPort {
	var at []netip.AddrPort
	for _, p := range ports {
		at = append(at, netip.AddrPortFrom(addr, p.Port()))
	}
	return at
}

// enough has nobody else come in. Where rails may come back the door stays open for those, until
// close.
func (d *door) enough() {
	if d.rails {
		close(d.full)
		return
	}
	d.close()
}

// take takes connections of a listener until the door is closed.
func (d *door) take(ctx context.Context, l *msg.Listener) {
	for {
		conn, err := l.Accept(ctx)
		select {
		case d.came <- accepted{conn, err}:
		case <-d.full:
			if err == nil {
				conn.Abort() // one too many, which is told by hanging up
			}
		case <-ctx.Done():
			if err == nil {
				conn.Abort()
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// close refuses who comes from now on. It is idempotent.
func (d *door) close() {
	d.cancel()
	d.running.Wait()
	for _, l := range d.of {
		l.Close()
	}
}
