package msg_test

import (
	"errors"
	"net/netip"
	"testing"

	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/roce"
	rcm "xroce/roce/cm"
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

// TestHelloThatDoesNotFit: who speaks another version, wants what we have not, another service, or
// no messages at all, is refused at once, told why by what we speak, and counted. Others are taken
// meanwhile.
func TestHelloThatDoesNotFit(t *testing.T) {
	network, hub, at, conns := newHub(t, msg.Options{})
	host := newStrangerHost(t, network, 2)
	cases := []struct {
		name   string
		change func(h *rmsg.Hello)
		want   rmsg.Status
	}{
		{
			"a later version", func(h *rmsg.Hello) { h.Version, h.MinVersion = 3, 2 },
			rmsg.StatusVersion,
		},
		{
			"an earlier version", func(h *rmsg.Hello) { h.Version, h.MinVersion = 0, 0 },
			rmsg.StatusVersion,
		},
		{"what nobody has", func(h *rmsg.Hello) { h.Required = 1 << 15 }, rmsg.StatusCapability},
		{"a stream", func(h *rmsg.Hello) { h.Service = rmsg.ServiceStream }, rmsg.StatusService},
		{"a refusal", func(h *rmsg.Hello) { h.Status = rmsg.StatusBusy }, rmsg.StatusProtocolError},
		{"no messages", nil, rmsg.StatusService},
	}
	for _, c := range cases {
		private := make([]byte, rmsg.HelloLen)
		if c.change != nil {
			h := hello()
			c.change(h)
			h.Put(private)
		}
		_, err := host.dial(t, at, private)
		rejected := new(cm.RejectedError)
		if !errors.As(err, &rejected) {
			t.Fatalf("%s: %v", c.name, err)
		}
		answer, err := rmsg.ParseHello(rejected.Private)
		must(t, err)
		if answer.Status != c.want || answer.Version != rmsg.Version {
			t.Errorf("%s: the answer is %v", c.name, &answer)
		}
	}
	// A request that is answered late comes again, and is refused again.
	refused, again := hub.Counters()[rmsg.HellosRefused], repeated(host.manager)
	if most := uint64(len(cases)) + again; refused < uint64(len(cases)) || refused > most {
		t.Errorf("%d are counted, %d requests came again", refused, again)
	}
	host.mustDial(t, at)
	<-conns
}

// repeated is how many requests for a connection a manager has sent again.
func repeated(m *cm.Manager) (n uint64) {
	for id, count := range m.Counters() {
		if rcm.CounterID(id).Spec().Name == "cm_tx_retries_req" {
			n = count
		}
	}
	return n
}

// TestRefusalIsToldByName: who dials a listener for streams, and wants messages, is told so.
func TestRefusalIsToldByName(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	l := listen(t, hosts)
	_, err := hosts[0].Dial(within(t), netip.AddrPort(l.Addr().(msg.Addr)))
	if why := new(rmsg.StatusError); !errors.As(err, &why) || why.Status != rmsg.StatusService {
		t.Errorf("refused with %v", err)
	}
	must(t, l.Close())
}
