package transfer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"xroce/engine/sim"
)

// TestReasonBehindALostConnection: a server that said why it gives up before it hung up is
// quoted, although what is noticed first may be that nothing can be sent to it.
func TestReasonBehindALostConnection(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	err := r.sendInVain(t, patience{}, func(link *Link) {
		hearOffer(link)
		sayMessage(link, message{Path: "x"})
		sayMessage(link, message{Error: "the disk is on fire"})
		link.Close()
	})
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Error(err)
	}
}

// TestReasonOfTheEnd: who is told to end while it waits for the other end says so, and not
// that reading took too long, by which it was woken.
func TestReasonOfTheEnd(t *testing.T) {
	r := newRig(t, 0, sim.Faults{})
	fire := errors.New("the house is on fire")
	type play func(context.Context, context.CancelCauseFunc) (string, error)
	for name, play := range map[string]play{
		"receiver": func(ctx context.Context, end context.CancelCauseFunc) (string, error) {
			from, to := r.connect(t, client, server)
			over := r.received(ctx, to, ReceiveConfig{})
			said := hearAll(from)
			end(fire)
			err := <-over
			return <-said, err
		},
		"sender": func(ctx context.Context, end context.CancelCauseFunc) (string, error) {
			said := make(chan string)
			go func() {
				link, err := r.accept(t.Context(), server)
				if err != nil {
					t.Error(err)
				}
				_, _ = newControl(link, patience{}).receive(t.Context(), ordinary.exchange)
				heard := hearAll(link)
				end(fire)
				said <- <-heard
			}()
			c := r.client()
			_, err := c.Send(ctx, SendConfig{File: r.file, Path: "x"})
			return <-said, err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		said, err := play(ctx, cancel)
		if !errors.Is(err, fire) || !strings.Contains(said, fire.Error()) {
			t.Errorf("%s: %v, and says %q", name, err, said)
		}
	}
}
