package peer

import (
	"context"
	"fmt"
	"net"
	"time"

	"xroce/engine"
	"xroce/engine/oob"
)

// exchangeTime bounds the exchange of connection parameters: a TCP connection
// that says nothing is not a peer.
const exchangeTime = 10 * time.Second

// Guard makes the end of the context end all reading and writing on conn, and
// bounds the exchange that follows. The returned function lifts both, unless the
// context has ended: then all has been woken when it returns. It must be called, once.
func Guard(ctx context.Context, conn net.Conn) (release func()) {
	// A deadline that cannot be set is that of a closed connection, on which
	// reading and writing fail by themselves.
	_ = conn.SetDeadline(time.Now().Add(Stretched(ctx, exchangeTime)))
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(over)
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if stop() {
			_ = conn.SetDeadline(time.Time{})
			return
		}
		<-over // else it could undo the deadline of who says why it gives up
	}
}

// Tell sends the local endpoint in the text form of ibv_rc_pingpong.
func (e *End) Tell(conn net.Conn) error {
	l := e.Local
	return oob.Send(conn, oob.Endpoint{QPN: l.QPN, PSN: l.PSN, GID: l.GID})
}

// Hear receives the endpoint of the other end.
func Hear(conn net.Conn) (engine.Endpoint, error) {
	m, err := oob.Receive(conn)
	if oob.HungUp(err) {
		err = fmt.Errorf("%w: the peer closed the connection instead of answering; its own "+
			"message says why (ibv_rc_pingpong needs -g INDEX of a RoCE v2 GID)", err)
	}
	if err != nil {
		return engine.Endpoint{}, err
	}
	if m.GID.IsZero() {
		return engine.Endpoint{}, fmt.Errorf("the peer sent no GID: RoCE needs one; "+
			"start ibv_rc_pingpong with -g INDEX (%s)", m.AppendText(nil))
	}
	return engine.Endpoint{QPN: m.QPN, PSN: m.PSN, GID: m.GID}, nil
}
