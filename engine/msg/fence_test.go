package msg_test

import (
	"bytes"
	"errors"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
)

// TestFence: who receives a message with a fence finds what was sent before in its place, however
// long that is and by whatever protocol it came.
func TestFence(t *testing.T) {
	_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	ctx := within(t)
	for round := range 60 {
		by := rmsg.Protocol(round % 6)
		data := bytes.Repeat([]byte{byte(round + 1)}, 200_000)
		got := make([]byte, len(data))
		long := &msg.Send{Buffers: [][]byte{data}, Protocol: by}
		last := &msg.Send{Buffers: [][]byte{{1}}, Tag: 1, Fence: true}
		r := &msg.Receive{Buffers: [][]byte{got}, Mask: 1, From: cb}
		sign := &msg.Receive{Buffers: [][]byte{make([]byte, 1)}, Tag: 1, Mask: 1, From: cb}
		must(t, errors.Join(b.PostReceive(r), b.PostReceive(sign)))
		must(t, errors.Join(ca.PostSend(long), ca.PostSend(last)))
		must(t, sign.Wait(ctx))
		if !bytes.Equal(got, data) {
			t.Fatalf("by %v: it is not there behind the fence", long.Choice)
		}
		must(t, errors.Join(r.Wait(ctx), long.Wait(ctx), last.Wait(ctx)))
	}
}
