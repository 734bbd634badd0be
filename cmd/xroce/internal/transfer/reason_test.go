package transfer

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/sim"
)

// A cut connection takes so many messages, and has been hung up on for the next.
type cut struct {
	net.Conn
	after int
}

func (c *cut) Write(b []byte) (int, error) {
	if c.after--; c.after < 0 {
		return 0, &net.OpError{Op: "write", Err: unix.EPIPE}
	}
	return c.Conn.Write(b)
}

// TestReasonBehindABrokenPipe: a receiver that said why it gives up before it hung up is
// quoted, although what is noticed first is that nothing can be sent to it.
func TestReasonBehindABrokenPipe(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	from, to := net.Pipe()
	defer to.Close()
	go func() {
		say(to, accept(hearOffer(to)))
		say(to, message{Error: "the disk is on fire"})
	}()
	_, err := Send(t.Context(), r.dev[0], &cut{from, 2}, SendConfig{
		File: r.file, Path: "x", GIDIndex: peer.AutoGID,
	})
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Error(err)
	}
}
