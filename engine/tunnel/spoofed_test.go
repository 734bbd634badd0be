package tunnel

import (
	"bytes"
	"errors"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestRequestInAPeersName: who sends a request with the address of a peer, and never confirms
// the answer, which goes to that, ends none of the connections of the peer.
func TestRequestInAPeersName(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverRC}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	before, connects := b.hello.instance, b.Stats().Peers[0].Connects
	a.await("not known", func(Stats) bool { return a.peers[0].instance.Load() == before })
	other := b.hello
	other.instance += 2
	qp, err := b.dev.CreateQP(b.pd, engine.QPInit{
		Extensions: roce.ExtPiggybackAck, SendCQ: b.lanes[0].cq, RecvCQ: b.lanes[0].cq,
		MaxSendWR: 1, MaxRecvWR: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer qp.Close()
	_, err = b.manager.DialService(t.Context(), b.peers[0].addr, b.service(), cm.Setup{
		QP: qp, Private: other.put(),
		// The answer is not what was asked for.
		Require: roce.ExtPiggybackAck,
	})
	if !errors.Is(err, cm.ErrExtensions) {
		t.Fatal(err)
	}
	if now := a.peers[0].instance.Load(); now != before {
		t.Errorf("the peer is %x, and was %x", now, before)
	}
	hello := frame(0xff, 1, 70)
	b.send(inner.VNet{}, hello)
	if _, got := a.receive(); !bytes.Equal(got, hello) {
		t.Errorf("%x came", got)
	}
	if n := b.Stats().Peers[0].Connects; n != connects {
		t.Errorf("it connected %d times, and before %d", n, connects)
	}
}
