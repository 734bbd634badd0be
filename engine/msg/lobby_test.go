package msg_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest/timeout"
)

// crowd has strangers connect from two hosts, as many as a listener has places and no more than one
// host may have of them, and returns their connections.
func crowd(t *testing.T, network *sim.Network, at netip.AddrPort) (conns []*msg.Conn) {
	t.Helper()
	how := quick
	how.Linger = -1
	for n, many := range map[byte]int{103: 12, 104: 4} {
		h := newHost(t, network, n, how, msg.Options{Linger: deadLinger})
		for range many {
			c, err := h.Dial(within(t), at)
			must(t, err)
			conns = append(conns, c)
		}
	}
	return conns
}

// TestRailComesBackBehindStrangers: strangers are connected whom nobody accepts, as many as there
// are places. A rail of a connection that was accepted is lost, and comes back all the same.
func TestRailComesBackBehindStrangers(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	crowd(t, w.nets[0], w.at[0])
	for i := range w.nets { // at the first one they are asked for, too
		w.cut(t, i, true)
		w.up(t, 1)
		w.cut(t, i, false)
		w.up(t, 2)
	}
	must(t, w.ca.Send(within(t), []byte("still here")))
}

// TestStrangersThatHungUpHoldNoPlace: strangers that have hung up before anybody has accepted them
// have all places. Who is accepted meanwhile is one of them, as long as nobody else wants to be
// connected; and who does is.
func TestStrangersThatHungUpHoldNoPlace(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	hub, addr := newNode(t, network, 1, msg.Options{Linger: deadLinger})
	at := netip.AddrPortFrom(addr, 7471)
	l, err := hub.Listen(at)
	must(t, err)
	defer l.Close()
	for _, c := range crowd(t, network, at) {
		c.Abort()
	}
	c, err := l.Accept(within(t))
	must(t, err)
	<-c.Done()
	good := newHost(t, network, 2, quick, msg.Options{Linger: deadLinger})
	for range 3 { // one has a place
		ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(10*time.Second))
		_, err := good.Dial(ctx, at)
		cancel()
		must(t, err)
	}
	from := map[netip.Addr]int{}
	for range 16 {
		c, err := l.Accept(within(t))
		must(t, err)
		from[c.RemoteAddr().Addr()]++
	}
	if from[good.addr] != 3 {
		t.Errorf("%v are accepted, 3 are of %v", from, good.addr)
	}
}

// TestTokenThatIsOverused: a peer that knows the token of its own session dials rails with it again
// and again, all that there may be and others, and is never ready. It has one attempt of each rail
// that it has at a time, and a rail of somebody else that is lost comes back.
func TestTokenThatIsOverused(t *testing.T) {
	t.Parallel() // it waits most of the time
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	says := hello()
	says.Capabilities |= rmsg.CapabilityRails
	says.Rails = 2
	private := make([]byte, rmsg.HelloLen)
	says.Put(private)
	s, err := newStrangerHost(t, w.nets[0], 103).dial(t, w.at[0], private)
	must(t, err)
	theirs, err := rmsg.ParseHello(s.conn.Private())
	must(t, err)
	says.Session = theirs.Session
	h := newStrangerHost(t, w.nets[1], 103)
	must(t, w.nets[1].SetDirection([6]byte{2, 0, 0, 0, 1, 2}, [6]byte{2, 0, 0, 0, 0, 103},
		sim.Faults{Blocked: true}))
	const many = 60
	ctx, cancel := context.WithCancel(t.Context())
	dialled := make(chan error, many)
	defer func() {
		cancel()
		for range many {
			<-dialled
		}
	}()
	before := w.devices[1][1].Resources(0).Total.QP
	refusals := w.endpoints[1].Counters()[rmsg.RailsRefused]
	for n := range many {
		says.Rail = byte(n % 10)
		private := make([]byte, rmsg.HelloLen)
		says.Put(private)
		cq, err := h.dev.CreateCQ(16)
		must(t, err)
		setup := cm.Setup{
			PD: h.dev.AllocPD(), Private: private, Init: engine.QPInit{SendCQ: cq, RecvCQ: cq},
		}
		go func() {
			_, err := h.manager.Dial(ctx, w.at[1], setup)
			dialled <- err
		}()
	}
	most, refused := 0, uint64(0)
	const tooHigh = many * 8 / 10
	for end := time.Now().Add(timeout.Scaled(5 * time.Second)); refused < tooHigh; {
		if time.Now().After(end) {
			t.Errorf("%d rails are refused that it does not have, of %d", refused, tooHigh)
			break
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
		most = max(most, w.devices[1][1].Resources(0).Total.QP-before)
		refused = w.endpoints[1].Counters()[rmsg.RailsRefused] - refusals
	}
	if most > 4 { // of two rails, and those that are given back
		t.Errorf("it has %d attempts at a time", most)
	}
	w.cut(t, 1, true)
	w.up(t, 1)
	w.cut(t, 1, false)
	w.up(t, 2)
}
