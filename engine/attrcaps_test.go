package engine_test

import (
	"math"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// A watchedHost is a host that tells of its port.
type watchedHost struct {
	engine.Host
	states chan bool
}

func (h *watchedHost) PortStates() <-chan bool { return h.states }

func (h *watchedHost) Close() error {
	close(h.states)
	return h.Host.Close()
}

// TestAttrPortEvents: PORT_ACTIVE_EVENT is of devices whose host tells of its port, and
// those have the event.
func TestAttrPortEvents(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	port, err := w.network.NewPort(sim.PortConfig{MAC: [6]byte{2, 7}, MTU: 4200})
	must(t, err)
	host := &watchedHost{port, make(chan bool)}
	dev, err := engine.OpenLink(port, host, engine.Options{Clock: w.clock, Direct: true})
	must(t, err)
	for d, want := range map[*engine.Device]bool{w.devs[0]: false, dev: true} {
		if got := d.Query().Caps&engine.CapPortActiveEvent != 0; got != want {
			t.Errorf("PORT_ACTIVE_EVENT is %t, want %t", got, want)
		}
	}
	host.states <- true
	host.states <- true // the first one was raised when this is taken
	if e, ok := dev.PollEvent(); !ok || e.Type != roce.EventPortActive {
		t.Errorf("%+v, %t", e, ok)
	}
	must(t, dev.Close())
}

// TestAttrPacing: a rate can be set for the types that are told, from the lowest to the
// highest, and holds what they send; for others it cannot.
func TestAttrPacing(t *testing.T) {
	for _, o := range []engine.Options{{}, {RawPackets: true}} {
		w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, o)
		caps := w.devs[0].Query().Pacing
		told := uint32(0)
		for typ, s := range pacedSeats(t, w, o) {
			told |= 1 << typ
			set := func(kbps uint32) error {
				return s.qp.Modify(&roce.Attr{State: roce.StateRTS, RateLimit: kbps},
					roce.AttrState|roce.AttrRateLimit)
			}
			can := caps.Types&(1<<typ) != 0
			for _, kbps := range []uint32{caps.MinRate, caps.MaxRate} {
				if err := set(kbps); (err == nil) != can {
					t.Errorf("%s, told %t: %d kbit/s: %v", typ, can, kbps, err)
				} else if can && s.qp.Query().RateLimit != kbps {
					t.Errorf("%s: %d kbit/s became %d", typ, kbps, s.qp.Query().RateLimit)
				}
			}
			if !can {
				continue
			}
			must(t, set(1000))
			before := w.clock.Now()
			for range 10 {
				s.send(t, s.paced)
			}
			w.succeed(s.cq, 10)
			// Ten messages of 1000 bytes, of which the last waits for the nine before it.
			if took := w.clock.Now() - before; took < 9*8*roce.Millisecond-roce.Millisecond {
				t.Errorf("%s: a rate of 1 Mbit/s lets 80 kbit go in %d us", typ,
					took/roce.Microsecond)
			}
		}
		if caps.Types&^told != 0 || caps.MinRate != 1 || caps.MaxRate != math.MaxUint32 {
			t.Errorf("%+v, of which %#x were tried", caps, told)
		}
	}
}

// A pacedSeat is a seat with what it sends.
type pacedSeat struct {
	*seat
	paced roce.SendWR
}

// pacedSeats are seats of every type of QP that can be in RTS.
func pacedSeats(t *testing.T, w *world, o engine.Options) map[roce.QPType]pacedSeat {
	t.Helper()
	seats := map[roce.QPType]pacedSeat{}
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC} {
		init := engine.QPInit{Type: typ}
		a, b := seatOn(t, w.devs[0], init), seatOn(t, w.devs[1], init)
		join(t, a, b, engine.ConnectOptions{})
		seats[typ] = pacedSeat{a, writeTo(a, b, roce.OpWrite, 1000)}
	}
	x := newXRCPair(t, w)
	write := writeTo(x.a, x.b, roce.OpWrite, 1000)
	write.RemoteSRQN = x.srqs[0].SRQN()
	seats[roce.TypeXRCSend] = pacedSeat{x.a, write}
	seats[roce.TypeXRCRecv] = pacedSeat{seat: x.b}
	a, b := datagramSeat(t, w.devs[0], engine.QPInit{}), datagramSeat(t, w.devs[1], engine.QPInit{})
	ah := a.handle(t, b.dev.GIDs()[gidIPv4], gidIPv4)
	seats[roce.TypeUD] = pacedSeat{a, a.datagram(ah, b.qp.QPN(), 1000)}
	if o.RawPackets {
		r := rawSeat(t, w.devs[0])
		r.fill([6]byte{2, 0xff}, experimental, 1000)
		seats[roce.TypeRawPacket] = pacedSeat{r, roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{r.mr.SGE(0, 1000)},
		}}
	}
	return seats
}

// TestAttrModeration: CQ.Modify goes as far as is told, and what it sets holds events
// back.
func TestAttrModeration(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	caps := w.devs[1].Query().CQModeration
	must(t, b.cq.Modify(caps.MaxCount, time.Nanosecond))
	if b.cq.Modify(caps.MaxCount+1, time.Nanosecond) == nil {
		t.Errorf("%d completions are more than are told", caps.MaxCount+1)
	}
	must(t, b.cq.Modify(caps.MaxCount, caps.MaxPeriod))
	b.cq.Arm(false)
	b.recv(t, 0, 0, 8)
	a.send(t, writeTo(a, b, roce.OpSend, 8))
	w.run(func() bool {
		select {
		case <-b.cq.Events():
			return true
		default:
			return false
		}
	})
	at := w.clock.Now()
	if after := at - w.succeed(b.cq, 1)[0].Time; after != roce.Time(caps.MaxPeriod) {
		t.Errorf("the event came after %d ns, want %s", after, caps.MaxPeriod)
	}
}

// TestAttrTimestamps: completions have a time, of the clock and in the unit that are told.
func TestAttrTimestamps(t *testing.T) {
	const delay = roce.Millisecond
	w := simWorld(t, 2, sim.Faults{Delay: delay}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	attr := w.devs[0].Query()
	b.recv(t, 0, 0, 8)
	posted := w.clock.Now()
	a.send(t, writeTo(a, b, roce.OpSend, 8))
	sent, received := w.succeed(a.cq, 1)[0].Time, w.succeed(b.cq, 1)[0].Time
	// In ticks of the clock: kHz are ticks a millisecond.
	ticks := func(t roce.Time) uint64 { return uint64(t) & attr.TimestampMask }
	oneWay := ticks(received) - ticks(posted)
	if roundTrip := ticks(sent) - ticks(posted); oneWay != attr.CoreClock ||
		roundTrip != 2*attr.CoreClock {
		t.Errorf("%d and %d ticks of %d kHz for 1 and 2 ms", oneWay, roundTrip, attr.CoreClock)
	}
}
