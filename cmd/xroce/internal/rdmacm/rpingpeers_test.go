package rdmacm

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	machine "xroce/roce/cm"
	"xroce/roce/wire"
)

// Clients that ask, and go when they are answered, leave nothing behind.
func TestRpingLeavingClients(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	config := Rping{Addr: server.at(false, RpingPort), Size: 64}
	ended := server.begin(t, func() (Result, error) {
		return Result{}, server.ServeRpings(ctx, config)
	})
	before := server.Dev.Resources(0).Total
	for range 5 {
		p, err := client.newPinger(config, true)
		must(t, err)
		setup := p.setup()
		setup.Prepare = func(qp *engine.QP) error { // so it cannot be connected any more
			return qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
		}
		if _, err := client.Manager.Dial(ctx, config.Addr, setup); err == nil {
			t.Fatal("connected in ERR")
		}
	}
	for server.Dev.Resources(0).Total != before && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	if left := server.Dev.Resources(0).Total; left != before {
		t.Errorf("before %+v, after %+v", before, left)
	}
	cancel()
	if o := <-ended; !errors.Is(o.err, context.Canceled) {
		t.Errorf("ends with %v", o.err)
	}
}

// A client that asks, and says nothing when it is answered, is let go.
func TestRpingAbsentClient(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx := within(t)
	server.Silence = 50 * time.Millisecond
	ended := server.begin(t, func() (Result, error) {
		return server.ServeRping(ctx, Rping{Addr: server.at(false, RpingPort), Size: 64})
	})
	must(t, client.Manager.Close()) // its QP 1 is needed here
	pd := client.Dev.AllocPD()
	cq, err := client.Dev.CreateCQ(1)
	must(t, err)
	gsi, err := client.Dev.CreateGSI(pd, engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxInline: machine.MADLen,
	})
	must(t, err)
	defer gsi.Close()
	must(t, gsi.Start(roce.GSIQKey))
	local, remote := wire.GIDFromAddr(client.v4), wire.GIDFromAddr(server.v4)
	index, err := client.Dev.SourceGID(server.v4)
	must(t, err)
	ah, err := client.Dev.CreateAH(ctx, pd, engine.AddressVector{DGID: remote, SGIDIndex: index})
	must(t, err)
	request := machine.REQ{
		LocalCommID: 1, ServiceID: machine.ServiceIDOf(machine.PortSpaceTCP, RpingPort),
		LocalCAGUID: 1, LocalQPN: 0x100, ResponderRes: 1, InitiatorDepth: 1, LocalTimeout: 20,
		RetryCount: 7, PKey: wire.DefaultPKey, PathMTU: wire.MTU1024, MaxCMRetries: 15,
		Primary: machine.PathFields{
			LocalGID: local, RemoteGID: remote, HopLimit: 64, LocalAckTimeout: 17,
		},
	}
	machine.IPHeader{
		Src: netip.AddrPortFrom(client.v4, 7), Dst: server.v4,
	}.Put(request.Private[:])
	mad := make([]byte, machine.MADLen)
	request.Put(mad, 1)
	must(t, gsi.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline, Inline: mad, AH: ah, RemoteQPN: 1,
		RemoteQKey: roce.GSIQKey,
	}))
	fails(t, (<-ended).err, "nothing came from the peer for 50ms")
}
