package peer

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// A slowConn takes a while to set a deadline that is over.
type slowConn struct {
	net.Conn
	begun, proceed chan struct{}
	woken          atomic.Bool
}

func (c *slowConn) SetDeadline(t time.Time) error {
	if !t.IsZero() && t.Before(time.Now()) {
		close(c.begun)
		<-c.proceed
		c.woken.Store(true)
	}
	return nil
}

// TestGuardLeavesNothingBehind: when it is released, a deadline that was over is not set any
// more: who says why it gives up has one of its own.
func TestGuardLeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	conn := &slowConn{begun: make(chan struct{}), proceed: make(chan struct{})}
	release := Guard(ctx, conn)
	cancel()
	<-conn.begun
	woken := make(chan bool, 1)
	go func() {
		release()
		woken <- conn.woken.Load()
	}()
	for range 1000 {
		runtime.Gosched() // one that does not wait has returned by then
	}
	close(conn.proceed)
	if !<-woken {
		t.Error("released, and the deadline was yet to be set")
	}
}
