package perf

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	machine "xroce/roce/cm"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

var joiningAt = netip.MustParseAddrPort("192.0.2.1:18515")

// A joiningRig is two ends of which the exchange is over, about to connect the queue pairs of a
// test, and a stranger.
type joiningRig struct {
	network        *sim.Network
	devs           [3]*engine.Device
	managers       [3]*cm.Manager
	setups         [3]cm.Setup
	server, client *Managed
}

// joiningOptions have nobody ask again for seconds, however busy the machine is.
var joiningOptions = cm.Options{Linger: -1, Machine: machine.Config{ResponseTimeout: 20}}

func newJoiningRig(t *testing.T) (context.Context, *joiningRig) {
	t.Helper()
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	t.Cleanup(cancel)
	r := &joiningRig{network: network}
	for i := range r.managers {
		r.devs[i] = device(t, network, byte(i+1), engine.Options{})
		r.open(t, i)
		cq, err := r.devs[i].CreateCQ(64)
		if err != nil {
			t.Fatal(err)
		}
		r.setups[i] = cm.Setup{PD: r.devs[i].AllocPD(), Init: engine.QPInit{
			SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
		}}
	}
	r.server = &Managed{manager: r.managers[0], over: make(chan struct{})}
	if r.server.listener, err = r.managers[0].Listen(joiningAt); err != nil {
		t.Fatal(err)
	}
	r.client = &Managed{
		manager: r.managers[1], at: joiningAt, dial: true, patience: timeout.Scaled(time.Minute),
	}
	var joined sync.WaitGroup
	joined.Go(func() {
		request, err := r.server.listener.Accept(ctx)
		if err == nil {
			r.server.talk = new(talk)
			r.server.talk.Conn, err = request.Accept(ctx, r.setups[0])
		}
		if err != nil {
			t.Error(err)
		}
	})
	if _, err := r.client.ask(ctx, r.setups[1]); err != nil {
		t.Error(err)
	}
	if joined.Wait(); t.Failed() {
		t.FailNow()
	}
	return ctx, r
}

// open gives a device a manager.
func (r *joiningRig) open(t *testing.T, i int) {
	t.Helper()
	var err error
	if r.managers[i], err = cm.Open(r.devs[i], joiningOptions); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.managers[i].Close() })
}

// queuePairs makes queue pairs of an end, in INIT.
func (r *joiningRig) queuePairs(t *testing.T, end, n int) []*engine.QP {
	t.Helper()
	qps := make([]*engine.QP, n)
	for i := range qps {
		var err error
		if qps[i], err = r.queuePair(end); err != nil {
			t.Fatal(err)
		}
	}
	return qps
}

func (r *joiningRig) queuePair(end int) (*engine.QP, error) {
	qp, err := r.devs[end].CreateQP(r.setups[end].PD, r.setups[end].Init)
	if err == nil {
		err = qp.Init(0)
	}
	return qp, err
}

// join connects queue pairs of both ends, and checks that those at the same place are.
func (r *joiningRig) join(t *testing.T, ctx context.Context, n int) {
	t.Helper()
	before := len(r.devs[0].Resources(1 << 10).QPs)
	ours, theirs := r.queuePairs(t, 0, n), r.queuePairs(t, 1, n)
	var joined sync.WaitGroup
	joined.Go(func() {
		err := r.server.acceptAll(ctx, ours, r.setups[0], func() (*engine.QP, error) {
			return r.queuePair(0)
		})
		if err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	if err := r.client.askAll(ctx, theirs, r.setups[1]); err != nil {
		t.Errorf("the client: %v", err)
	}
	if joined.Wait(); t.Failed() {
		t.FailNow()
	}
	for i := range ours {
		if a, b := ours[i].Query().DestQPN, theirs[i].QPN(); a != b {
			t.Errorf("queue pair %d is connected to 0x%06x, not 0x%06x", i, a, b)
		}
	}
	if got := len(r.devs[0].Resources(1 << 10).QPs); got != before+n {
		t.Errorf("there are %d queue pairs more, not %d", got-before, n)
	}
}

// TestOthersThatWaitAreRefused: another client of the client's host that has asked before the ends
// connect the queue pairs of their test gets none of these.
func TestOthersThatWaitAreRefused(t *testing.T) {
	ctx, r := newJoiningRig(t)
	refused := make(chan error, 1)
	go func() {
		_, err := NewManaged(ctx, r.devs[1], r.managers[1], joiningAt, netip.Addr{}, true, nil, nil)
		refused <- err
	}()
	for r.server.listener.Waiting() == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // its request is under way
	}
	r.server.refuseWaiting()
	var rejected *cm.RejectedError
	if err := <-refused; !errors.As(err, &rejected) {
		t.Errorf("the other client: %v", err)
	}
	r.join(t, ctx, 3)
	r.server.refuseWaiting() // nobody waits, and it does not either
}

// TestPartnerIsChecked: what is connected to another queue pair than the peer's is told.
func TestPartnerIsChecked(t *testing.T) {
	ctx, r := newJoiningRig(t)
	ours, theirs := r.queuePairs(t, 0, 1), r.queuePairs(t, 1, 1)
	var joined sync.WaitGroup
	joined.Go(func() {
		if err := r.server.acceptAll(ctx, ours, r.setups[0], nil); err != nil {
			t.Error(err)
		}
	})
	if err := r.client.askAll(ctx, theirs, r.setups[1]); err != nil {
		t.Error(err)
	}
	joined.Wait()
	test := &run{via: r.server, plans: true, end: &end{flows: []flow{{qp: ours[0]}}}}
	if err := test.checkPartner(0, theirs[0].QPN()); err != nil {
		t.Error(err)
	}
	err := test.checkPartner(0, theirs[0].QPN()+1)
	if err == nil || !strings.Contains(err.Error(), "another client there has asked") {
		t.Errorf("another's number: %v", err)
	}
}

// An impostor says that it has the client's address.
type impostor struct{ engine.Host }

func (p impostor) Port() engine.Port {
	port := p.Host.Port()
	port.Addrs = []netip.Addr{netip.MustParseAddr("192.0.2.2")}
	return port
}

// forge has somebody ask for connections in the client's name, who hears the answers and says
// nothing.
func (r *joiningRig) forge(t *testing.T, ctx context.Context, requests uint32) {
	t.Helper()
	port, err := r.network.NewPort(sim.PortConfig{
		Name: "xr9", MAC: [6]byte{2, 0, 0, 0, 0, 9}, MTU: 4200,
	})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := engine.OpenLink(port, impostor{port}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(int(requests))
	if err != nil {
		t.Fatal(err)
	}
	gsi, err := dev.CreateGSI(pd, engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: int(requests), MaxInline: machine.MADLen,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer gsi.Close()
	if err := gsi.Start(0); err != nil {
		t.Fatal(err)
	}
	source := netip.MustParseAddr("192.0.2.2")
	local, remote := wire.GIDFromAddr(source), wire.GIDFromAddr(joiningAt.Addr())
	index, err := dev.SourceGID(joiningAt.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ah, err := dev.CreateAH(ctx, pd, engine.AddressVector{DGID: remote, SGIDIndex: index})
	if err != nil {
		t.Fatal(err)
	}
	for n := range requests {
		request := machine.REQ{
			LocalCommID: n + 1,
			ServiceID:   machine.ServiceIDOf(machine.PortSpaceTCP, joiningAt.Port()),
			LocalCAGUID: 1, LocalQPN: 0x100 + n, ResponderRes: 1, InitiatorDepth: 1,
			LocalTimeout: 20, RetryCount: 7, PKey: wire.DefaultPKey, PathMTU: wire.MTU1024,
			MaxCMRetries: 15,
			Primary: machine.PathFields{
				LocalGID: local, RemoteGID: remote, HopLimit: 64, LocalAckTimeout: 17,
			},
		}
		machine.IPHeader{
			Src: netip.AddrPortFrom(source, 7), Dst: joiningAt.Addr(),
		}.Put(request.Private[:])
		mad := make([]byte, machine.MADLen)
		request.Put(mad, 1+uint64(n))
		err := gsi.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: mad, AH: ah,
			RemoteQPN: 1, RemoteQKey: roce.GSIQKey,
		})
		var done [1]roce.Completion
		if err == nil {
			_, err = cq.Wait(ctx, done[:])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestJoiningStranger: while two ends are about to connect the queue pairs of a test, somebody
// else asks first. He is refused, and the ends connect.
func TestJoiningStranger(t *testing.T) {
	ctx, r := newJoiningRig(t)
	refused := make(chan error)
	go func() {
		_, err := r.managers[2].Dial(ctx, joiningAt, r.setups[2])
		refused <- err
	}()
	for r.server.listener.Waiting() == 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	r.join(t, ctx, 1)
	var rejected *cm.RejectedError
	if err := <-refused; !errors.As(err, &rejected) {
		t.Errorf("the stranger gets %v", err)
	}
}

// TestJoiningInTheClientsName: who asks in the client's name, and confirms nothing, takes no place
// of the client's.
func TestJoiningInTheClientsName(t *testing.T) {
	ctx, r := newJoiningRig(t)
	r.forge(t, ctx, 20)
	for r.server.listener.Waiting() < 20 && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // as above
	}
	r.join(t, ctx, 3)
}

// TestJoiningEnds: when the connection of the exchange ends, so does the wait for the others.
func TestJoiningEnds(t *testing.T) {
	ctx, r := newJoiningRig(t)
	ctx, stop := r.server.whileThere(ctx)
	defer stop()
	r.server.err = errSetup
	close(r.server.over)
	qps := r.queuePairs(t, 0, 1)
	err := r.server.acceptAll(ctx, qps, r.setups[0], func() (*engine.QP, error) {
		return r.queuePair(0)
	})
	if err == nil || !errors.Is(context.Cause(ctx), errSetup) {
		t.Errorf("%v, %v", err, context.Cause(ctx))
	}
}
