package pingpong

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/oob"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// AckTimeout is the code of the local ACK timeout of the originals, 67 ms.
const AckTimeout = 14

// Config says how to play. Both ends must agree on Kind, Size, MTU, Iters and
// QPs.
type Config struct {
	Kind     Kind
	Size     int      // bytes of a message; of a datagram at most the port's MTU
	MTU      wire.MTU // path MTU; datagrams have none
	RxDepth  int      // receives posted
	Iters    int      // messages each way
	QPs      int      // queue pairs, 1 but with SRQ; at most RxDepth and MaxQPs
	GIDIndex int      // peer.AutoGID to have one chosen
	Events   bool     // sleep until completions come instead of polling
	Check    bool     // compare every byte received; both ends must say so
	ODP      bool     // page the memory on demand; RC and SRQ only

	// Timeout is the code of the local ACK timeout, 0 for AckTimeout.
	Timeout uint8

	// Silence is how long nothing may come from the peer, 0 for 30 s. The originals wait
	// for ever.
	Silence time.Duration

	// Connected, if not nil, is told the two endpoints of each QP before the
	// first message.
	Connected func(local, remote engine.Endpoint)
}

// A player is one QP of a game.
type player struct {
	*peer.End
	remote  engine.Endpoint
	ah      *roce.AH // of the other end; datagrams only
	pending int      // of recvID and sendID, what to wait for before sending
}

// A game is one end of a running conversation.
type game struct {
	Config
	dev     *engine.Device
	pd      *engine.PD
	cq      *engine.CQ
	srq     *engine.SRQ // SRQ only
	players []*player
	out, in *engine.MR // the message sent, the places received to
	free    []int      // places without a receive, of a kind that has places
	routs   int        // receives posted
	rcnt    int        // messages received
	scnt    int        // sends complete
	waits   uint       // calls of wait
}

// newGame makes the QPs and the buffers. A server of one connection answers from the
// buffer it received to, so what the client gets back went both ways.
func newGame(dev *engine.Device, c Config, client bool) (g *game, err error) {
	g = &game{Config: c, dev: dev, pd: dev.AllocPD()}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.cq, err = dev.CreateCQ(c.RxDepth + c.QPs); err != nil {
		return g, err
	}
	if c.Kind == SRQ {
		if g.srq, err = dev.CreateSRQ(g.pd, engine.SRQInit{MaxWR: c.RxDepth}); err != nil {
			return g, err
		}
	}
	for range c.QPs {
		if err := g.addPlayer(); err != nil {
			return g, err
		}
	}
	places := 1
	if c.Kind.places() {
		places = c.RxDepth
		for i := range places {
			g.free = append(g.free, i)
		}
	}
	if g.in, err = g.register(places, mem.LocalWrite); err != nil {
		return g, err
	}
	g.out = g.in
	if client || c.Kind.places() {
		if g.out, err = g.register(1, 0); err != nil {
			return g, err
		}
	}
	spoil(g.in.Bytes())
	c.Kind.fill(g.message(g.out, 0), c.Check)
	return g, nil
}

// register makes a region with places for messages.
func (g *game) register(places int, access mem.Access) (*engine.MR, error) {
	reg := g.dev.RegMR
	if g.ODP {
		reg = g.dev.RegODP
	}
	return reg(g.pd, make([]byte, places*g.room()), access)
}

// addPlayer makes a QP that takes receives.
func (g *game) addPlayer() error {
	qp, err := g.dev.CreateQP(g.pd, engine.QPInit{
		Type: g.Kind.qpType(), SendCQ: g.cq, RecvCQ: g.cq, SRQ: g.srq,
		MaxSendWR: 1, MaxRecvWR: g.RxDepth, SignalAll: true,
	})
	if err != nil {
		return err
	}
	g.players = append(g.players, &player{
		End: &peer.End{Dev: g.dev, PD: g.pd, CQ: g.cq, QP: qp},
	})
	if g.Kind == UD {
		return qp.Start(qkey)
	}
	return qp.Init(mem.LocalWrite)
}

// room is how many bytes a receive has.
func (g *game) room() int { return g.Kind.headroom() + g.Size }

// message is the part of a place in a region behind the headroom.
func (g *game) message(m *engine.MR, place int) []byte {
	return m.Bytes()[place*g.room():][:g.room()][g.Kind.headroom():]
}

func (g *game) close() {
	for _, p := range g.players {
		p.QP.Close()
	}
	if g.out != nil && g.out != g.in {
		g.out.Deregister()
	}
	if g.in != nil {
		g.in.Deregister()
	}
	// Closing the device ends what is left, and all errors here could say is
	// that something is still in use.
	if g.srq != nil {
		_ = g.srq.Close()
	}
	if g.cq != nil {
		_ = g.cq.Close()
	}
	_ = g.pd.Close()
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
	if err := g.hear(conn); err != nil {
		return Result{}, err
	}
	for _, p := range g.players {
		if err := p.ChooseGID(c.GIDIndex, conn, &p.remote.GID); err != nil {
			return Result{}, err
		}
	}
	if err := g.connect(ctx); err != nil {
		return Result{}, err
	}
	if err := g.postReceives(); err != nil {
		return Result{}, err
	}
	if err := g.tell(conn); err != nil {
		return Result{}, err
	}
	if err := oob.ReceiveDone(conn); err != nil {
		return Result{}, err
	}
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
	for _, p := range g.players {
		if err := p.ChooseGID(c.GIDIndex, conn, nil); err != nil {
			return Result{}, err
		}
	}
	if err := g.postReceives(); err != nil {
		return Result{}, err
	}
	if err := g.tell(conn); err != nil {
		return Result{}, err
	}
	if err := g.hear(conn); err != nil {
		return Result{}, err
	}
	if err := g.connect(ctx); err != nil {
		return Result{}, err
	}
	if err := oob.SendDone(conn); err != nil {
		return Result{}, err
	}
	return g.play(ctx, recvID|sendID)
}

// MaxQPs is how many endpoints ibv_srq_pingpong always exchanges; those that it
// does not use are zero.
const MaxQPs = 256

// exchanged is how many endpoints each end tells the other.
func (g *game) exchanged() int {
	if g.Kind == SRQ {
		return MaxQPs
	}
	return 1
}

// tell sends the endpoint of each QP.
func (g *game) tell(conn net.Conn) error {
	for i := range g.exchanged() {
		var err error
		if i < len(g.players) {
			err = g.players[i].Tell(conn)
		} else {
			err = oob.Send(conn, oob.Endpoint{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errQPs says that the ends do not agree on the number of QPs.
var errQPs = errors.New("the peer has another number of QPs: start both ends with the same -q")

// hear receives the endpoint of the other end of each QP.
func (g *game) hear(conn net.Conn) (err error) {
	if g.players[0].remote, err = peer.Hear(conn); err != nil {
		return err
	}
	for i := 1; i < g.exchanged(); i++ {
		m, err := oob.Receive(conn)
		if err != nil {
			return fmt.Errorf("after %d of %d endpoints: %w", i, g.exchanged(), err)
		}
		if (i < len(g.players)) == m.GID.IsZero() {
			return errQPs
		}
		if i < len(g.players) {
			g.players[i].remote = engine.Endpoint{QPN: m.QPN, PSN: m.PSN, GID: m.GID}
		}
	}
	return nil
}

// connect makes each QP ready to send to its other end.
func (g *game) connect(ctx context.Context) error {
	for _, p := range g.players {
		if g.Kind != UD {
			o := engine.ConnectOptions{PathMTU: g.MTU, Timeout: cmp.Or(g.Timeout, AckTimeout)}
			if err := p.Connect(ctx, p.remote, o); err != nil {
				return err
			}
			continue
		}
		var err error
		p.ah, err = g.dev.CreateAH(ctx, g.pd, engine.AddressVector{
			DGID: p.remote.GID, SGIDIndex: p.SGIDIndex,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
