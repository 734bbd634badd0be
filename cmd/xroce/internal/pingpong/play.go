package pingpong

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce"
)

// Result is what a game came to.
type Result struct {
	Bytes    int64         // both directions together
	Iters    int           // round trips
	Duration time.Duration // from the exchange of endpoints to the last message
}

// Work request identifiers, as the originals number them. That of a receive has
// its place in the bits above.
const (
	recvID = 1
	sendID = 2

	placeShift = 2
)

// postReceives posts as many receives as are missing.
func (g *game) postReceives() error {
	post := g.players[0].QP.PostRecv
	if g.srq != nil {
		post = g.srq.PostRecv
	}
	for ; g.routs < g.RxDepth; g.routs++ {
		place := 0
		if last := len(g.free) - 1; last >= 0 {
			place, g.free = g.free[last], g.free[:last]
		}
		err := post(&roce.RecvWR{
			WRID:   recvID | uint64(place)<<placeShift,
			SGList: []roce.SGE{g.in.SGE(place*g.room(), g.room())},
		})
		if err != nil {
			return fmt.Errorf("after %d of %d receives: %w", g.routs, g.RxDepth, err)
		}
	}
	return nil
}

func (g *game) postSend(p *player) error {
	wr := roce.SendWR{
		WRID: sendID, Opcode: roce.OpSend,
		SGList: []roce.SGE{g.out.SGE(g.Kind.headroom(), g.Size)},
	}
	if p.ah != nil {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = p.ah, p.remote.QPN, qkey
	}
	return p.QP.PostSend(&wr)
}

// defaultSilence is how long nothing may come from the peer.
const defaultSilence = 30 * time.Second

// patient returns a context that ends when nothing has come for too long.
func (g *game) patient(ctx context.Context) (_ context.Context, stop func()) {
	return peer.Patience(ctx, cmp.Or(g.Silence, defaultSilence), g.qps()...)
}

// qps are the queue pairs of the players.
func (g *game) qps() []*engine.QP {
	qps := make([]*engine.QP, len(g.players))
	for i, p := range g.players {
		qps[i] = p.QP
	}
	return qps
}

// play runs the conversation. The end that sends first is pending a send.
func (g *game) play(ctx context.Context, pending int) (Result, error) {
	start := time.Now()
	whole := ctx
	ctx, stop := g.patient(ctx)
	defer stop()
	for _, p := range g.players {
		if g.Connected != nil {
			g.Connected(p.Local, p.remote)
		}
		if p.pending = pending; pending&sendID == 0 {
			continue
		}
		if err := g.postSend(p); err != nil {
			return Result{}, err
		}
	}
	var wcs [2]roce.Completion
	for g.rcnt < g.Iters || g.scnt < g.Iters {
		n, err := g.wait(ctx, wcs[:])
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return Result{}, fmt.Errorf("after %d of %d round trips: %w",
				min(g.rcnt, g.scnt), g.Iters, err)
		}
		for i := range wcs[:n] {
			if err := g.completed(&wcs[i]); err != nil {
				return Result{}, err
			}
		}
	}
	r := Result{
		Bytes: 2 * int64(g.Size) * int64(g.Iters), Iters: g.Iters, Duration: time.Since(start),
	}
	stop()
	g.linger(whole)
	return r, nil
}

// wait polls, or sleeps when asked to, until there are completions.
func (g *game) wait(ctx context.Context, wcs []roce.Completion) (int, error) {
	// Asking the context and the device for every poll would cost more than the poll. A game in
	// which nobody ever waits can be interrupted, too: a sleep that finds something asks neither.
	const polls = 1024
	if g.waits++; g.waits%polls == 0 && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if !g.Events {
		for range polls {
			n, err := g.cq.Poll(wcs)
			if err != nil {
				return 0, err
			}
			for i := range wcs[:n] {
				if err := wcs[i].Err(); err != nil {
					return 0, err
				}
			}
			if n > 0 {
				return n, nil
			}
		}
		// The context ends a sleep in Wait, which checks the device, too.
	}
	return g.players[0].Wait(ctx, wcs)
}

// player returns the one that a completion is of.
func (g *game) player(wc *roce.Completion) *player {
	for _, p := range g.players {
		if p.QP.QPN() == wc.QPN {
			return p
		}
	}
	return g.players[0]
}

// completed accounts for one completion and sends when it is our turn.
func (g *game) completed(wc *roce.Completion) error {
	p := g.player(wc)
	id, place := int(wc.WRID&(recvID|sendID)), int(wc.WRID>>placeShift)
	switch id {
	case sendID:
		g.scnt++
	case recvID:
		stray := g.Kind == UD && wc.SrcQP != p.remote.QPN
		if !stray {
			g.rcnt++
			if err := g.received(wc, place); err != nil {
				return err
			}
			if err := g.surplus(); err != nil {
				return err
			}
		}
		if g.Kind.places() {
			g.free = append(g.free, place)
		}
		if g.routs--; g.routs <= len(g.players) {
			if err := g.postReceives(); err != nil {
				return err
			}
		}
		if stray {
			return nil // anybody may send datagrams, which count nowhere
		}
	}
	p.pending &^= id
	if g.scnt >= g.Iters || p.pending != 0 {
		return nil
	}
	if err := g.postSend(p); err != nil {
		return err
	}
	p.pending = recvID | sendID
	return nil
}

// received looks at a message that came.
func (g *game) received(wc *roce.Completion, place int) error {
	if n := int(wc.ByteLen) - g.Kind.headroom(); n != g.Size {
		return fmt.Errorf("message %d has %d bytes, not %d: start both ends with the same -s",
			g.rcnt, n, g.Size)
	}
	if !g.Check {
		return nil
	}
	message := g.message(g.in, place)
	if at := g.Kind.mismatch(message); at >= 0 {
		return fmt.Errorf("message %d: invalid data in page %d (byte %d is 0x%02x); "+
			"start both ends with -c", g.rcnt, at/page, at, message[at])
	}
	if g.in != g.out {
		spoil(message) // the next message has to write it anew
	}
	return nil
}

// surplus says that the peer has sent more than it may: one message too many for each queue pair
// when it has another -n. Who takes none of ours, and goes on sending, would keep us for ever.
// Where sends are complete without the peer, as those of datagrams are, the game is over by then.
func (g *game) surplus() error {
	if g.Kind == UD || g.rcnt <= g.Iters+len(g.players) {
		return nil
	}
	return fmt.Errorf("%d messages came, of %d, and %d of ours got through: start both ends "+
		"with the same -n", g.rcnt, g.Iters, g.scnt)
}

// lingerTime is longer than the peer waits for an acknowledgement.
const lingerTime = 150 * time.Millisecond

// linger stays for a peer that did not get our last acknowledgement and sends
// its message again.
func (g *game) linger(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lingerTime)
	defer cancel()
	var wcs [1]roce.Completion
	for ctx.Err() == nil {
		// Nothing is expected; waiting is what drives a device in direct mode.
		if _, err := g.cq.Wait(ctx, wcs[:]); err != nil {
			return
		}
	}
}
