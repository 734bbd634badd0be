package pingpong

import (
	"context"
	"fmt"
	"net"
	"time"

	"xroce/cmd/xroce/peer"
	"xroce/engine"
	"xroce/engine/oob"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Config says how to play. Both ends must agree on Size, MTU and Iters.
type Config struct {
	Size     int      // bytes of a message
	MTU      wire.MTU // path MTU
	RxDepth  int      // receives posted
	Iters    int      // messages each way
	GIDIndex int      // peer.AutoGID to have one chosen
	Events   bool     // sleep until completions come instead of polling
	Check    bool     // compare every byte received; both ends must say so

	// Connected, if not nil, is told the two endpoints before the first message.
	Connected func(local, remote engine.Endpoint)
}

// Result is what a game came to.
type Result struct {
	Bytes    int64         // both directions together
	Iters    int           // round trips
	Duration time.Duration // from the exchange of endpoints to the last message
}

// Work request identifiers, as the original numbers them.
const (
	recvID = 1
	sendID = 2
)

// A game is one end of a running conversation.
type game struct {
	*peer.End
	Config
	out, in *engine.MR // the message sent, the place received to
	routs   int        // receives posted
	rcnt    int        // messages received
	scnt    int        // sends complete
	pending int        // of recvID and sendID, what to wait for before sending
}

// newGame makes the QP and the buffers. The server answers from the buffer it
// received to, so what the client gets back went both ways.
func newGame(dev *engine.Device, c Config, client bool) (*game, error) {
	end, err := peer.New(dev, peer.Config{
		SendWR: 1, RecvWR: c.RxDepth, Access: mem.LocalWrite,
	})
	if err != nil {
		return nil, err
	}
	g := &game{End: end, Config: c}
	if g.in, err = dev.RegMR(end.PD, make([]byte, c.Size), mem.LocalWrite); err != nil {
		end.Close()
		return nil, err
	}
	g.out = g.in
	if client {
		if g.out, err = dev.RegMR(end.PD, make([]byte, c.Size), 0); err != nil {
			g.close()
			return nil, err
		}
	}
	fill(g.out.Bytes(), c.Check)
	return g, nil
}

func (g *game) close() {
	g.End.Close()
	g.in.Deregister()
	if g.out != nil && g.out != g.in {
		g.out.Deregister()
	}
}

// Serve plays the server on a TCP connection that was accepted.
func Serve(ctx context.Context, dev *engine.Device, conn net.Conn, c Config) (Result, error) {
	g, err := newGame(dev, c, false)
	if err != nil {
		return Result{}, err
	}
	defer g.close()
	release := peer.Guard(ctx, conn)
	defer release()
	remote, err := peer.Hear(conn)
	if err != nil {
		return Result{}, err
	}
	if err := g.ChooseGID(c.GIDIndex, conn, &remote.GID); err != nil {
		return Result{}, err
	}
	if err := g.Connect(ctx, remote, engine.ConnectOptions{PathMTU: c.MTU}); err != nil {
		return Result{}, err
	}
	if err := g.postReceives(); err != nil {
		return Result{}, err
	}
	if err := g.Tell(conn); err != nil {
		return Result{}, err
	}
	if err := oob.ReceiveDone(conn); err != nil {
		return Result{}, err
	}
	g.told(remote)
	return g.play(ctx, recvID)
}

// Dial plays the client on a TCP connection to the server.
func Dial(ctx context.Context, dev *engine.Device, conn net.Conn, c Config) (Result, error) {
	g, err := newGame(dev, c, true)
	if err != nil {
		return Result{}, err
	}
	defer g.close()
	release := peer.Guard(ctx, conn)
	defer release()
	if err := g.ChooseGID(c.GIDIndex, conn, nil); err != nil {
		return Result{}, err
	}
	if err := g.postReceives(); err != nil {
		return Result{}, err
	}
	if err := g.Tell(conn); err != nil {
		return Result{}, err
	}
	remote, err := peer.Hear(conn)
	if err != nil {
		return Result{}, err
	}
	if err := g.Connect(ctx, remote, engine.ConnectOptions{PathMTU: c.MTU}); err != nil {
		return Result{}, err
	}
	if err := oob.SendDone(conn); err != nil {
		return Result{}, err
	}
	g.told(remote)
	return g.play(ctx, recvID|sendID)
}

func (g *game) told(remote engine.Endpoint) {
	if g.Connected != nil {
		g.Connected(g.Local, remote)
	}
}

// postReceives posts as many receives as are missing.
func (g *game) postReceives() error {
	for ; g.routs < g.RxDepth; g.routs++ {
		err := g.QP.PostRecv(&roce.RecvWR{
			WRID: recvID, SGList: []roce.SGE{g.in.SGE(0, g.Size)},
		})
		if err != nil {
			return fmt.Errorf("after %d of %d receives: %w", g.routs, g.RxDepth, err)
		}
	}
	return nil
}

func (g *game) postSend() error {
	return g.QP.PostSend(&roce.SendWR{
		WRID: sendID, Opcode: roce.OpSend, SGList: []roce.SGE{g.out.SGE(0, g.Size)},
	})
}

// play runs the conversation. The end that sends first is pending a send.
func (g *game) play(ctx context.Context, pending int) (Result, error) {
	start := time.Now()
	if g.pending = pending; pending&sendID != 0 {
		if err := g.postSend(); err != nil {
			return Result{}, err
		}
	}
	var wcs [2]roce.Completion
	for g.rcnt < g.Iters || g.scnt < g.Iters {
		n, err := g.wait(ctx, wcs[:])
		if err != nil {
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
	g.linger(ctx)
	return r, nil
}

// wait polls, or sleeps when asked to, until there are completions.
func (g *game) wait(ctx context.Context, wcs []roce.Completion) (int, error) {
	if !g.Events {
		// Asking the context and the device for every poll would cost more
		// than the poll.
		const polls = 1024
		for range polls {
			n, err := g.CQ.Poll(wcs)
			if err != nil {
				return 0, err
			}
			for i := range wcs[:n] {
				if err := peer.Check(&wcs[i]); err != nil {
					return 0, err
				}
			}
			if n > 0 {
				return n, nil
			}
		}
		// The context ends a sleep in Wait, which checks the device, too.
	}
	return g.End.Wait(ctx, wcs)
}

// completed accounts for one completion and sends when it is our turn.
func (g *game) completed(wc *roce.Completion) error {
	switch wc.WRID {
	case sendID:
		g.scnt++
	case recvID:
		g.rcnt++
		if err := g.received(wc); err != nil {
			return err
		}
		if g.routs--; g.routs <= 1 {
			if err := g.postReceives(); err != nil {
				return err
			}
		}
	}
	g.pending &^= int(wc.WRID)
	if g.scnt >= g.Iters || g.pending != 0 {
		return nil
	}
	if err := g.postSend(); err != nil {
		return err
	}
	g.pending = recvID | sendID
	return nil
}

// received looks at a message that came.
func (g *game) received(wc *roce.Completion) error {
	if int(wc.ByteLen) != g.Size {
		return fmt.Errorf("message %d has %d bytes, not %d: start both ends with the same -s",
			g.rcnt, wc.ByteLen, g.Size)
	}
	if !g.Check {
		return nil
	}
	if at := mismatch(g.in.Bytes()); at >= 0 {
		return fmt.Errorf("message %d: invalid data in page %d (byte %d is 0x%02x); "+
			"start both ends with -c", g.rcnt, at/page, at, g.in.Bytes()[at])
	}
	if g.in != g.out {
		clear(g.in.Bytes()) // the next message has to write it anew
	}
	return nil
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
		if n, err := g.CQ.Wait(ctx, wcs[:]); n == 0 && err != nil {
			return
		}
	}
}
