package traffic_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/mem"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A lab is a device whose queue pairs answer, and a port to send requests from, on a network
// under virtual time.
type lab struct {
	*sim.Port // of the sender
	t         *testing.T
	clock     *sim.VirtualClock
	net       *sim.Network
	dev       *engine.Device
	pd        *engine.PD
	memory    []byte
	mr        *engine.MR
	host      sim.PortConfig
	meanwhile func() // in each wait, if not nil
}

func newLab(t *testing.T, faults sim.Faults) *lab {
	t.Helper()
	l := &lab{t: t, clock: new(sim.VirtualClock), memory: make([]byte, 1<<16)}
	faults.Delay = 5 * clock.Microsecond
	var err error
	l.net, err = sim.NewNetwork(11, l.clock, faults)
	l.must(err)
	ours := sim.PortConfig{
		Name: "a", MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 1500,
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
	}
	l.host = sim.PortConfig{
		Name: "b", MAC: [6]byte{2, 0, 0, 0, 0, 2}, MTU: 1500,
		Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.2")},
	}
	l.Port, err = l.net.NewPort(ours)
	l.must(err)
	port, err := l.net.NewPort(l.host)
	l.must(err)
	l.dev, err = engine.OpenLink(port, port, engine.Options{Clock: l.clock, Direct: true})
	l.must(err)
	t.Cleanup(func() { l.must(l.dev.Close()) })
	l.pd = l.dev.AllocPD()
	l.mr, err = l.dev.RegMR(l.pd, l.memory, mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead|
		mem.RemoteAtomic)
	l.must(err)
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// Now, Wall and Sleep make it the clock of a sender.
func (l *lab) Now() clock.Time { return l.clock.Now() }

func (l *lab) Wall() int64 { return int64(l.clock.Now()) }

func (l *lab) Sleep(_ context.Context, d clock.Time) { _ = l.Wait(time.Duration(d)) }

// Receive has the device work first.
func (l *lab) Receive(f []xsk.RxFrame) int {
	for l.dev.Progress() {
	}
	return l.Port.Receive(f)
}

// Wait goes on to the next event.
func (l *lab) Wait(d time.Duration) error {
	if l.meanwhile != nil {
		l.meanwhile()
	}
	at := l.clock.Now() + clock.Time(d)
	for _, next := range []func() (clock.Time, bool){l.net.NextArrival, l.dev.NextDeadline} {
		if t, ok := next(); ok {
			at = min(at, t)
		}
	}
	l.clock.AdvanceTo(max(at, l.clock.Now()+1))
	return nil
}

// responder makes a queue pair that answers one of ours, with so many receives.
func (l *lab) responder(qpn uint32, psn wire.PSN, receives int) *engine.QP {
	l.t.Helper()
	cq, err := l.dev.CreateCQ(1024)
	l.must(err)
	qp, err := l.dev.CreateQP(l.pd, engine.QPInit{
		Type: roce.TypeRC, SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 512, MaxSendSGE: 1,
		MaxRecvSGE: 1,
	})
	l.must(err)
	l.must(qp.Init(mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic))
	path, err := l.dev.ResolvePath(l.t.Context(), engine.AddressVector{
		DGID: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")), SGIDIndex: 1, HopLimit: 64,
	})
	l.must(err)
	l.must(qp.Modify(&roce.Attr{
		State: roce.StateRTR, Path: path, PathMTU: wire.MTU1024, DestQPN: qpn, RQPSN: psn,
		MaxDestRdAtomic: 4, MinRNRTimer: 1,
	}, roce.AttrState|roce.AttrAV|roce.AttrPathMTU|roce.AttrDestQPN|roce.AttrRQPSN|
		roce.AttrMaxDestRdAtomic|roce.AttrMinRNRTimer))
	for i := range receives {
		l.must(qp.PostRecv(&roce.RecvWR{WRID: uint64(i), SGList: []roce.SGE{l.mr.SGE(0, 8192)}}))
	}
	return qp
}

// requests makes the sender of one connection.
func (l *lab) requests(c gen.Config, r gen.RequesterConfig, count uint64, rate string,
) *traffic.Requests {
	l.t.Helper()
	c.Kind, c.MaxFrame, c.Path = gen.KindRoCE, 1514, route().Path
	c.Path.HopLimit = 64
	q, err := gen.NewRequester(c, r)
	l.must(err)
	p := plan(rate, 0, traffic.PlanFlow{})
	schedule, err := p.Schedule(1)
	l.must(err)
	return &traffic.Requests{
		Link: l, Peer: c.Path.Dst, Conns: []*gen.Requester{q}, Schedule: schedule, Count: count,
		Batch: 16, Clock: l,
	}
}

// TestRequests: a queue pair answers each packet of each kind of request, also where packets are
// lost, doubled, overtaken and damaged both ways, and what it has in memory is what was sent.
func TestRequests(t *testing.T) {
	bad := sim.Faults{
		Drop: 0.02, Dup: 0.01, Reorder: 0.01, ReorderBy: 50 * clock.Microsecond, Corrupt: 0.005,
	}
	for name, ops := range map[string][]wire.Opcode{
		"writes": {wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast},
		"sends":  {wire.RCSendFirst, wire.RCSendLast, wire.RCSendOnlyImm},
		"mixed": {
			wire.RCWriteOnly, wire.RCReadRequest, wire.RCWriteOnly, wire.RCFetchAdd,
			wire.RCSendOnly, wire.RCReadRequest, wire.RCReadRequest,
		},
	} {
		for i, faults := range []sim.Faults{{}, bad} {
			t.Run(name+strconv.Itoa(i), func(t *testing.T) {
				l := newLab(t, faults)
				qp := l.responder(0x77, 0xfffff0, 512)
				s := l.requests(gen.Config{
					Sizes: gen.List(200), Fill: gen.FillRandom, RoCE: gen.RoCE{
						Opcodes: ops, DestQP: qp.QPN(), PSN: 0xfffff0, RKey: l.mr.RKey(),
						VA: l.mr.Addr(), ReadLen: 5000,
					},
				}, gen.RequesterConfig{QPN: 0x77, Retries: 7, Reads: 2}, 420, "max")
				got, err := s.Run(t.Context())
				if err != nil || got.New != 420 || got.Packets != 420 || got.Open != 0 {
					t.Fatalf("%+v, %v", got, err)
				}
				lost := got.Resent > 0 && (got.NAKs > 0 || got.Implied > 0 || got.Timeouts > 0)
				if lost != (i == 1) || i == 0 && got.Frames != 420 {
					t.Errorf("%+v", got)
				}
				if qp.State() != roce.StateRTR {
					t.Errorf("the peer is in %s", qp.State())
				}
			})
		}
	}
}

// TestRequestsFaults: what is wrong on purpose is what the peer says, and of what it recovers
// from nothing is left.
func TestRequestsFaults(t *testing.T) {
	for fault, want := range map[string]func(*traffic.Requested, error) bool{
		"gap=20":  func(r *traffic.Requested, err error) bool { return err == nil && r.NAKs > 8 },
		"swap=20": func(r *traffic.Requested, err error) bool { return err == nil && r.NAKs > 8 },
		"bad_icrc=20": func(r *traffic.Requested, err error) bool {
			return err == nil && r.NAKs > 8
		},
		"duplicate=20": func(r *traffic.Requested, err error) bool {
			return err == nil && r.Resent == 0 && r.Frames == 210
		},
		"bad_key=50": func(_ *traffic.Requested, err error) bool {
			return errors.Is(err, gen.ErrNAK) && bytes.Contains([]byte(err.Error()),
				[]byte(wire.NAKRemoteAccessError.String()))
		},
		"order=50": func(_ *traffic.Requested, err error) bool {
			return errors.Is(err, gen.ErrNAK) && bytes.Contains([]byte(err.Error()),
				[]byte(wire.NAKInvalidRequest.String()))
		},
	} {
		t.Run(fault, func(t *testing.T) {
			l := newLab(t, sim.Faults{})
			qp := l.responder(0x77, 5, 0)
			f, err := gen.ParseFault(fault)
			l.must(err)
			s := l.requests(gen.Config{
				Sizes: gen.List(100), Faults: []gen.Fault{f}, RoCE: gen.RoCE{
					Opcodes: []wire.Opcode{wire.RCWriteOnly}, DestQP: qp.QPN(), PSN: 5,
					RKey: l.mr.RKey(), VA: l.mr.Addr(),
				},
			}, gen.RequesterConfig{QPN: 0x77, Retries: 7, Window: 8}, 200, "max")
			got, err := s.Run(t.Context())
			if !want(&got, err) || err == nil && got.Packets/2 != 100 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestRequestsUnanswered: a peer that is not there, or has no receive, ends the connection after
// as many tries as were asked for; one that has receives later holds it up and no more.
func TestRequestsUnanswered(t *testing.T) {
	l := newLab(t, sim.Faults{})
	config := func(qpn uint32) gen.Config {
		return gen.Config{Sizes: gen.List(100), RoCE: gen.RoCE{
			Opcodes: []wire.Opcode{wire.RCSendOnly}, DestQP: qpn,
		}}
	}
	s := l.requests(config(0x123), gen.RequesterConfig{QPN: 0x77, Retries: 2}, 10, "max")
	begun := l.clock.Now()
	got, err := s.Run(t.Context())
	if !errors.Is(err, gen.ErrRetries) || got.Timeouts != 3 || got.Resent != 20 ||
		l.clock.Now()-begun != 3*gen.DefaultTimeout {
		t.Errorf("nobody: %+v, %v after %d", got, err, l.clock.Now()-begun)
	}
	qp := l.responder(0x78, 0, 5)
	s = l.requests(config(qp.QPN()), gen.RequesterConfig{QPN: 0x78, RNR: 2}, 10, "max")
	got, err = s.Run(t.Context())
	if !errors.Is(err, gen.ErrRNR) || got.Packets != 5 || got.RNRs != 3 {
		t.Errorf("no receive: %+v, %v", got, err)
	}
	qp = l.responder(0x79, 0, 100)
	s = l.requests(config(qp.QPN()), gen.RequesterConfig{QPN: 0x79}, 100, "10kpps")
	begun = l.clock.Now()
	got, err = s.Run(t.Context())
	if d := l.clock.Now() - begun; err != nil || got.Frames != 100 || got.Messages != 100 ||
		d < 99*100*clock.Microsecond || d > 101*100*clock.Microsecond {
		t.Errorf("at a rate: %+v, %v in %d", got, err, d)
	}
}
