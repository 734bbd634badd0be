package msg_test

import (
	"runtime"
	"testing"

	"xroce/engine/msg"
)

// TestReceivesStayPosted: receives are posted again behind what is answered, so some are late, but
// never more than there are beyond those that the hello promises.
func TestReceivesStayPosted(t *testing.T) {
	l := newLoop(t)
	e, ca, cb := l.messages(t)
	ctx := within(t)
	c := e.Config()
	promised := uint32(c.Slots + 2*max(c.LargeSlots, c.StreamSlots) + 4*c.Rendezvous + 32)
	late := false
	fewest := func() uint32 {
		n := promised + 8
		for _, q := range l.dev.Resources(16).QPs {
			if q.Type == "RC" {
				n = min(n, q.RecvQueue)
			}
		}
		late = late || n < promised+8
		return n
	}
	look := func(after string) {
		t.Helper()
		n := fewest()
		for n < promised && ctx.Err() == nil { // what came behind it is not taken yet
			runtime.Gosched()
			n = fewest()
		}
		if n < promised {
			t.Fatalf("%d of %d receives are posted after %s", n, promised, after)
		}
	}
	look("connecting")
	one := newBurst(e, ca, cb, 1, 64)
	many := newBurst(e, ca, cb, burstLen, 64)
	long := newBurst(e, ca, cb, 4, 1<<20)
	for range 100 {
		must(t, one.run(ctx))
		look("a message")
		must(t, many.run(ctx))
		look("a burst")
	}
	for range 10 {
		must(t, long.run(ctx))
		look("long messages")
	}
	// Of several that nobody waits for, the service takes what came.
	receives := make([]msg.Receive, 20)
	for i := range receives {
		receives[i].Buffers, receives[i].From = [][]byte{make([]byte, 64)}, cb
		must(t, e.PostReceive(&receives[i]))
		must(t, ca.Send(ctx, make([]byte, 64)))
		<-receives[i].Done()
		look("a message that the service took")
	}
	if !late {
		t.Error("none was ever late")
	}
}
