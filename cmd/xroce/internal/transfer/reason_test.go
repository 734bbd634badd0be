package transfer

import (
	"context"
	"errors"
	"io"
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

// TestReasonOfTheEnd: who is told to end while it waits for the other end says so, and not
// that reading took too long, by which it was woken.
func TestReasonOfTheEnd(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	for name, end := range map[string]func(ctx context.Context, conn net.Conn) error{
		"receiver": func(ctx context.Context, conn net.Conn) error {
			_, err := Receive(ctx, r.dev[1], conn, ReceiveConfig{
				Store: r.store, GIDIndex: peer.AutoGID,
			})
			return err
		},
		"sender": func(ctx context.Context, conn net.Conn) error {
			_, err := Send(ctx, r.dev[0], conn, SendConfig{
				File: r.file, Path: "x", GIDIndex: peer.AutoGID,
			})
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		here, there := net.Pipe()
		said := make(chan string)
		go func() {
			if name == "sender" {
				_, _ = newControl(there).receive()
			}
			cancel(errors.New("the house is on fire"))
			text, _ := io.ReadAll(there)
			said <- string(text)
		}()
		err := end(ctx, here)
		here.Close()
		if text := <-said; err == nil || !strings.Contains(err.Error(), "the house is on fire") ||
			!strings.Contains(text, "the house is on fire") {
			t.Errorf("%s: %v, and says %q", name, err, text)
		}
	}
}
