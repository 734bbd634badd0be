package message

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/engine/crowd"
	"xroce/engine/msg"
)

// maxGuests is how many may be connected to a server at a time who have not said what they are
// about to do. Each has what a connection registers.
const maxGuests = 16

// errOthers says that somebody lost its place to others.
var errOthers = errors.New("others came, and it had not said what it is about to do")

// A guest is who came to a server. It may be anybody, until it has said what the client says: one
// that says nothing, or something else, is hung up on, and keeps nobody else from being the client.
type guest struct {
	conn  *msg.Conn
	host  netip.Prefix
	leave context.CancelCauseFunc
	err   error // of agree
}

// A reception has the guests of a server. It is for one goroutine, but for agreed.
type reception struct {
	*run
	guests   []*guest // the one that came first is first
	agreed   chan *guest
	agreeing sync.WaitGroup
}

// receive takes connections until those of the client are there, and has agreed over each on what
// is to come. A client that is about to do something else ends it.
func (r *run) receive(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	p := &reception{run: r, agreed: make(chan *guest)}
	defer p.agreeing.Wait()
	defer cancel()
	var late <-chan time.Time
	for len(r.links) < r.config.Peers {
		select {
		case a := <-r.door.came:
			if a.err != nil {
				return r.which(len(r.links), a.err)
			}
			p.enter(ctx, a.conn)
		case g := <-p.agreed:
			had := len(r.links)
			if err := p.judge(g); err != nil {
				return r.which(len(r.links)-1, err)
			}
			if len(r.links) > had { // a stranger gives the client no more time
				late = time.After(r.setup())
			}
		case <-late:
			return r.which(len(r.links), errSetup)
		case <-ctx.Done():
			return r.which(len(r.links), context.Cause(ctx))
		}
	}
	return nil
}

// enter begins to agree with somebody who came.
func (p *reception) enter(ctx context.Context, conn *msg.Conn) {
	within, leave := context.WithCancelCause(ctx)
	g := &guest{conn: conn, host: crowd.Host(conn.RemoteAddr().Addr()), leave: leave}
	if p.guests = append(p.guests, g); len(p.guests) > maxGuests {
		i := crowd.GivesWay(p.guests, func(g *guest) (netip.Prefix, bool) { return g.host, true })
		p.guests[i].leave(errOthers)
		p.guests = slices.Delete(p.guests, i, i+1)
	}
	p.agreeing.Go(func() {
		defer leave(nil)
		g.err = p.agree(within, conn)
		select {
		case p.agreed <- g:
		case <-ctx.Done():
			conn.Abort()
		}
	})
}

// judge takes a guest as the client if it is about to do the same as this end. The error says what
// else the client is about to do.
func (p *reception) judge(g *guest) error {
	if i := slices.Index(p.guests, g); i >= 0 {
		p.guests = slices.Delete(p.guests, i, i+1)
	}
	if g.err != nil && !errors.Is(g.err, ErrMismatch) {
		g.conn.Abort()
		if p.hooks.Refused != nil {
			p.hooks.Refused(g.conn.RemoteAddr().String(), g.err)
		}
		return nil
	}
	if len(p.links) == 0 && p.hooks.Met != nil {
		p.hooks.Met()
	}
	p.links = append(p.links, &link{run: p.run, conn: g.conn})
	return g.err
}

// which says over which connection it went wrong, where there are several.
func (r *run) which(i int, err error) error {
	if r.config.Peers == 1 {
		return err
	}
	return fmt.Errorf("connection %d of %d: %w", i+1, r.config.Peers, err)
}
