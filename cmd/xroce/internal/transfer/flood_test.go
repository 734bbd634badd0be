package transfer

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

// TestAnswersThatNobodyHears: who asks again and again and never listens has no answers pile up.
func TestAnswersThatNobodyHears(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 1, sim.Faults{})
	from, to := r.connect(t, client, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const most = 10_000 // requests: what the client's end keeps unasked has room for a fifth
	var asked atomic.Int64
	patient := ordinary
	patient.exchange = timeout.Scaled(time.Second)
	over := r.received(ctx, to, ReceiveConfig{patience: patient, Admit: func() error {
		if asked.Add(1) > most {
			cancel()
		}
		return nil
	}})
	must(t, say(from, hello))
	var err error
	for err == nil {
		s := &msg.Send{Buffers: [][]byte{[]byte(`{"ask":"dir","path":"d"}`)}}
		if from.post(s, tagControl) != nil {
			err = <-over
			break
		}
		select {
		case err = <-over:
		case <-s.Done():
		}
	}
	if n := asked.Load(); n > most || !errors.Is(err, peer.ErrSilence) {
		t.Errorf("%d requests were answered, and nobody has heard: %v", n, err)
	}
	from.Conn.Abort()
}

// TestWaitIsNoPatience: who says for ever that it waits is given up when its time is over, and at
// once when it has nothing to send.
func TestWaitIsNoPatience(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	for slow, c := range map[bool]struct {
		limit time.Duration
		want  string
	}{
		true:  {50 * time.Millisecond, "nothing came from the peer"},
		false: {timeout.Scaled(20 * time.Second), "it says that it waits"},
	} {
		from, to := r.connect(t, client, server)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				s := &msg.Send{Buffers: [][]byte{[]byte(`{"wait":true}`)}}
				if from.post(s, tagControl) != nil {
					return
				}
				<-s.Done()
			}
		}()
		listener := newControl(to, patience{})
		listener.slow = slow
		heard := make(chan error, 1)
		go func() {
			_, err := listener.receive(t.Context(), c.limit)
			heard <- err
		}()
		select {
		case err := <-heard:
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("slow %v: %v: no %q", slow, err, c.want)
			}
		case <-time.After(timeout.Scaled(40 * time.Second)):
			t.Errorf("slow %v: it waits for ever", slow)
		}
		to.Conn.Abort()
		<-done
	}
}
