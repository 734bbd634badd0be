package msg_test

import (
	"errors"
	"testing"

	"xroce/engine/msg"
	"xroce/roce"
	rmsg "xroce/roce/msg"
)

// TestKeyOfOnePeerEndsAnother: a peer that uses the key of another one is refused by the device
// and loses its own connection, which says why. What the other one sends arrives as it was, from
// the same slot.
func TestKeyOfOnePeerEndsAnother(t *testing.T) {
	network, hub, at, conns := newHub(t, msg.Options{})
	good, evil := newStrangerHost(t, network, 2), newStrangerHost(t, network, 3)
	a, ring := good.mustDial(t, at)
	<-conns
	a.say(rmsg.Control{Type: rmsg.TypeAdvertAck, ID: ring.ID})
	const times = 20
	for n := range times {
		b, own := evil.mustDial(t, at)
		c := <-conns
		b.say(rmsg.Control{Type: rmsg.TypeAdvertAck, ID: own.ID})
		if own.RKey == ring.RKey || own.Addr == ring.Addr {
			t.Fatal("two peers share slots")
		}
		forged := *ring
		if n%2 == 1 {
			forged.RKey = own.RKey // its own key, for slots that are not its own
		}
		if got := b.write(&forged, n, b.frame(ring.ID, number(1000), 7)); got !=
			roce.StatusRemAccessErr {
			t.Errorf("a frame in the slots of another peer: %v", got)
		}
		<-c.Done()
		if p := new(rmsg.PeerError); !errors.As(c.Err(), &p) || !errors.Is(c.Err(), rmsg.ErrKey) {
			t.Errorf("the connection ends with %v", c.Err())
		}
		b.conn.Close()
		if got := a.write(ring, n, a.frame(ring.ID, number(n), 7)); got != roce.StatusSuccess {
			t.Fatalf("a frame of the other one: %v", got)
		}
		buf := make([]byte, 100)
		got, from, err := hub.Receive(within(t), buf)
		must(t, err)
		if string(buf[:got]) != string(number(n)) || from == c {
			t.Errorf("message %d is %x", n, buf[:got])
		}
	}
	if n := hub.Counters()[rmsg.ProtocolErrors]; n != times {
		t.Errorf("%d connections are counted", n)
	}
}
