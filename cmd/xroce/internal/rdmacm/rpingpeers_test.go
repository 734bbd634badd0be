package rdmacm

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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

// An impostor is a host that says it has the address of another one.
type impostor struct {
	engine.Host
	addr netip.Addr
}

func (i impostor) Port() engine.Port {
	port := i.Host.Port()
	port.Addrs = []netip.Addr{i.addr}
	return port
}

// deafen lets nothing come through from one party to another, or everything again.
func deafen(t *testing.T, from, to *party, deaf bool) {
	t.Helper()
	must(t, to.network.SetDirection(from.Dev.Port().MAC, to.Dev.Port().MAC,
		sim.Faults{Blocked: deaf}))
}

// askAndLeave sends requests for connections in the name of a client, from another station. They
// are answered to the client, who refuses if it is not deaf.
func askAndLeave(t *testing.T, client, server *party, at uint16, requests uint32) {
	t.Helper()
	port, err := client.network.NewPort(sim.PortConfig{MAC: [6]byte{2, 0, 0, 0, 0, 66}, MTU: 1500})
	must(t, err)
	dev, err := engine.OpenLink(port, impostor{port, client.v4}, engine.Options{
		Clock: engine.NewSystemClock(),
	})
	must(t, err)
	defer func() { must(t, dev.Close()) }()
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(1)
	must(t, err)
	gsi, err := dev.CreateGSI(pd, engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: int(requests), MaxInline: machine.MADLen,
	})
	must(t, err)
	defer gsi.Close()
	must(t, gsi.Start(roce.GSIQKey))
	local, remote := wire.GIDFromAddr(client.v4), wire.GIDFromAddr(server.v4)
	index, err := dev.SourceGID(server.v4)
	must(t, err)
	ah, err := dev.CreateAH(t.Context(), pd, engine.AddressVector{
		DGID: remote, SGIDIndex: index,
	})
	must(t, err)
	for n := range requests {
		request := machine.REQ{
			LocalCommID: n + 1, ServiceID: machine.ServiceIDOf(machine.PortSpaceTCP, at),
			LocalCAGUID: 1, LocalQPN: 0x100 + n, ResponderRes: 1, InitiatorDepth: 1,
			LocalTimeout: 20, RetryCount: 7, PKey: wire.DefaultPKey, PathMTU: wire.MTU1024,
			MaxCMRetries: 15,
			Primary: machine.PathFields{
				LocalGID: local, RemoteGID: remote, HopLimit: 64, LocalAckTimeout: 17,
			},
		}
		machine.IPHeader{
			Src: netip.AddrPortFrom(client.v4, 7), Dst: server.v4,
		}.Put(request.Private[:])
		mad := make([]byte, machine.MADLen)
		request.Put(mad, 1+uint64(n))
		var done [1]roce.Completion
		must(t, gsi.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: mad, AH: ah,
			RemoteQPN: 1, RemoteQKey: roce.GSIQKey,
		}))
		_, err := cq.Wait(t.Context(), done[:])
		must(t, err)
	}
}

// A client that asks, and says nothing when it is answered, is let go.
func TestRpingAbsentClient(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	server.Silence = 50 * time.Millisecond
	complaint := make(chan struct{})
	server.Log = slog.New(slog.NewTextHandler(tellingWriter(func(b []byte) {
		if bytes.Contains(b, []byte("nothing came from the peer for 50ms")) {
			close(complaint)
		}
	}), nil))
	ended := server.begin(t, func() (Result, error) {
		at := server.at(false, RpingPort)
		return Result{}, server.ServeRpings(ctx, Rping{Addr: at, Size: 64})
	})
	deafen(t, server, client, true)
	askAndLeave(t, client, server, RpingPort, 1)
	select {
	case <-complaint:
	case <-ctx.Done():
		t.Error("it is waited for")
	}
	cancel()
	<-ended
}

// tellingWriter is an io.Writer that is a function.
type tellingWriter func(b []byte)

func (f tellingWriter) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// A server of one client is not that of whoever asks first and is not there.
func TestServersOfOneClient(t *testing.T) {
	t.Parallel() // it waits most of the time
	const port = 7471
	for name, end := range map[string]struct {
		serve func(context.Context, *party) (Result, error)
		dial  func(context.Context, *party, netip.AddrPort) (Result, error)
	}{
		"rdma-server": {
			func(ctx context.Context, p *party) (Result, error) {
				return p.ServeSimple(ctx, p.at(false, port))
			},
			func(ctx context.Context, p *party, to netip.AddrPort) (Result, error) {
				return p.DialSimple(ctx, to)
			},
		},
		"ucmatose": {
			func(ctx context.Context, p *party) (Result, error) {
				return p.ServeCmatose(ctx, Cmatose{
					Addr: p.at(false, port), Connections: 3, Count: 2, Size: 9,
				})
			},
			func(ctx context.Context, p *party, to netip.AddrPort) (Result, error) {
				return p.DialCmatose(ctx, Cmatose{Addr: to, Connections: 3, Count: 2, Size: 9})
			},
		},
		"rping": {
			func(ctx context.Context, p *party) (Result, error) {
				return p.ServeRping(ctx, Rping{Addr: p.at(false, port), Size: 64})
			},
			func(ctx context.Context, p *party, to netip.AddrPort) (Result, error) {
				return p.DialRping(ctx, Rping{Addr: to, Size: 64, Count: 1})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := newRig(t, sim.Faults{})
			ctx := within(t)
			ended := server.begin(t, func() (Result, error) { return end.serve(ctx, server) })
			askAndLeave(t, client, server, port, 20)
			_, err := end.dial(ctx, client, server.at(false, port))
			must(t, err)
			if o := <-ended; o.err != nil || o.Messages == 0 {
				t.Errorf("server %+v", o)
			}
		})
	}
}

// A server of all clients has its places for those who are there.
func TestRpingsAbsentClients(t *testing.T) {
	server, client := newRig(t, sim.Faults{})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	at := server.at(false, RpingPort)
	ended := server.begin(t, func() (Result, error) {
		return Result{}, server.ServeRpings(ctx, Rping{Addr: at, Size: 64})
	})
	deafen(t, server, client, true)
	askAndLeave(t, client, server, RpingPort, 2*maxOfAddress)
	for len(server.Dev.Resources(1<<10).QPs) <= maxOfAddress && ctx.Err() == nil {
		time.Sleep(time.Millisecond) // as above
	}
	deafen(t, server, client, false)
	_, err := client.DialRping(ctx, Rping{Addr: at, Size: 64, Count: 1})
	must(t, err)
	cancel()
	<-ended
}
