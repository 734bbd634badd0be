package engine

import (
	"fmt"
	"slices"
	"testing"

	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
	"xroce/xsk"
)

// judged has the queue of each packet and what came of it.
type judged []string

func (j *judged) Packet(p *capture.Packet) {
	*j = append(*j, fmt.Sprintf("queue %d %s", p.Queue, (&capture.Info{
		Verdict: p.Verdict, Reason: p.Reason,
	}).AppendComment(nil)))
}

// TestWatchHandover: a packet for a QP of another queue is shown there, and one to a group where it
// came to. When there is no room for it over there, it is shown where it came to, as dropped.
func TestWatchHandover(t *testing.T) {
	d := twoIdleQueues(t)
	connected, raw, member := d.create(roce.TypeRC), d.create(roce.TypeRawPacket),
		d.create(roce.TypeUD)
	if err := raw.AttachEtherType(0x88b5); err != nil {
		t.Fatal(err)
	}
	group := wire.GIDFromIPv4([4]byte{239, 193, 2, 3})
	d.groups.set(group, []*QP{member})
	var seen judged
	defer d.Watch(&seen)()
	for _, c := range []struct {
		name  string
		qp    *QP
		frame []byte
		first string // what is said of it where it comes to
		home  string // and on the queue of its QP
	}{
		{
			"connected", connected, d.frame(idleGID, roctest.Packet{
				Opcode: wire.RCSendOnly, DestQP: connected.QPN(),
			}), "", "dropped: qp_state",
		},
		{"raw", raw, rawFrame(), "", "dropped: qp_state"},
		{
			"group", member, d.frame(group, roctest.Packet{
				Opcode: wire.UDSendOnly, DestQP: wire.MulticastQP,
			}), "accepted", "",
		},
	} {
		q, home := d.other(c.qp), c.qp.home()
		frames := []xsk.RxFrame{{Head: c.frame}}
		expect := func(from *queue, verdict string) {
			t.Helper()
			var want judged
			if verdict != "" {
				want = judged{fmt.Sprintf("queue %d %s", from.index, verdict)}
			}
			if !slices.Equal(seen, want) {
				t.Errorf("%s: %q, want %q", c.name, seen, want)
			}
			seen = nil
		}
		q.handle(1, frames)
		expect(q, c.first)
		home.handleInbox(1, 1)
		expect(home, c.home)

		for home.inbox.put(0, &frames[0]) {
			continue
		}
		lost := q.handover.noRoom
		q.handle(1, frames)
		if n := q.handover.noRoom - lost; n != 1 {
			t.Errorf("%s: %d are lost, want 1", c.name, n)
		}
		expect(q, "dropped: handover_no_room")
		home.handleInbox(1, inboxFrames/burst)
		seen = nil
	}
}
