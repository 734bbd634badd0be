package transfer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"xroce/engine/msg"
	"xroce/engine/sim"
)

// admitted makes a client that was admitted, with its receiver running, whose error
// comes when it ends. The conversation is the caller's.
func (r *rig) admitted(t *testing.T, p patience) (c *control, s *sender, over <-chan error) {
	t.Helper()
	from, to := r.connect(t, client, server)
	over = r.received(t.Context(), to, ReceiveConfig{patience: p})
	c = newControl(from, patience{})
	must(t, c.greet(t.Context(), nil))
	s, err := newSender(t.Context(), SendConfig{File: r.file, Path: "x"})
	must(t, err)
	t.Cleanup(s.close)
	_, err = c.ask(t.Context(), s.offer(), ordinary.exchange)
	must(t, err)
	return c, s, over
}

// chunk sends a chunk of a length.
func (c *control) chunk(n int) error {
	return c.post(&msg.Send{Buffers: [][]byte{make([]byte, n)}}, tagData)
}

// TestHostileSenders were admitted, and may send chunks. What they do ends their transfer, and
// leaves no file and nothing at the device.
func TestHostileSenders(t *testing.T) {
	t.Parallel() // it waits most of the time
	// Each waits briefly for what does not come alone: what does come may be late.
	noChunk, noDigest := ordinary, ordinary
	noChunk.chunk, noDigest.digest = 50*time.Millisecond, 50*time.Millisecond
	zeros := fmt.Sprintf("%x", sha256.Sum256(make([]byte, 2*ChunkSize)))
	for name, c := range map[string]struct {
		patience patience
		play     func(ctx context.Context, c *control, s *sender) error
		want     string
	}{
		"short chunk": {ordinary, func(_ context.Context, c *control, _ *sender) error {
			_ = c.chunk(ChunkSize - 1)
			return c.send(message{SHA256: zeros})
		}, "it ended after 1048575 of 2097152 bytes"},
		"long chunk": {ordinary, func(_ context.Context, c *control, _ *sender) error {
			return c.chunk(ChunkSize + 1)
		}, "a chunk of 1048577 bytes"},
		"many chunks": {ordinary, func(_ context.Context, c *control, _ *sender) error {
			for range 3 {
				if err := c.chunk(ChunkSize); err != nil {
					return err
				}
			}
			return nil
		}, "it sent more than the 2097152 bytes"},
		"small chunks": {ordinary, func(_ context.Context, c *control, _ *sender) error {
			for range 3 {
				if err := c.chunk(1); err != nil {
					return err
				}
			}
			return c.send(message{SHA256: zeros})
		}, "it ended after 1 of 2097152 bytes"},
		"no data": {noChunk, func(_ context.Context, c *control, _ *sender) error {
			return c.send(message{SHA256: zeros})
		}, "nothing came from the peer"},
		"half of it": {noChunk, func(_ context.Context, c *control, _ *sender) error {
			return c.chunk(ChunkSize)
		}, "nothing came from the peer"},
		"two digests": {ordinary, func(_ context.Context, c *control, _ *sender) error {
			_ = c.send(message{SHA256: zeros})
			_ = c.send(message{SHA256: zeros})
			return c.chunk(ChunkSize + 1)
		}, "a chunk of 1048577 bytes"},
		"other data": {ordinary, func(ctx context.Context, c *control, s *sender) error {
			if _, err := s.stream(ctx, c); err != nil {
				return err
			}
			return c.send(message{SHA256: zeros})
		}, "SHA-256 differs"},
		"no digest": {noDigest, func(ctx context.Context, c *control, s *sender) error {
			_, err := s.stream(ctx, c)
			return err
		}, "nothing came from the peer"},
		"escape codes for one": {ordinary, func(ctx context.Context, c *control, s *sender) error {
			if _, err := s.stream(ctx, c); err != nil {
				return err
			}
			return c.send(message{SHA256: "\x1b[2J" + strings.Repeat("x", maxMessage/2)})
		}, `"\x1b[2Jxxx`},
		"gone": {ordinary, func(_ context.Context, c *control, _ *sender) error {
			c.Close()
			return nil
		}, "the connection is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2*ChunkSize, sim.Faults{})
			conn, s, over := r.admitted(t, c.patience)
			said := hearAll(conn.Link)
			// The receiver may have given up before the last of it.
			played := c.play(t.Context(), conn, s)
			if err := <-over; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: no %q (played: %v)", err, c.want, played)
			} else if len(err.Error()) > maxError {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			<-said
			r.settled(t, server)
			r.empty(t)
		})
	}
}
