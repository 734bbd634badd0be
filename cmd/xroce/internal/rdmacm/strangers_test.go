package rdmacm

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	machine "xroce/roce/cm"
	"xroce/xsk/xsktest/timeout"
)

// connect connects to a server as somebody who has nothing to say.
func (p *party) connect(ctx context.Context, t *testing.T, to netip.AddrPort) *cm.Conn {
	t.Helper()
	cq, err := p.Dev.CreateCQ(4)
	must(t, err)
	c, err := p.Manager.Dial(ctx, to, cm.Setup{
		PD: p.Dev.AllocPD(), Init: engine.QPInit{
			SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
		}, ResponderRes: 1, InitiatorDepth: 1,
	})
	must(t, err)
	return c
}

// outlived waits until a server has told of a client that was none.
func outlived(ctx context.Context, t *testing.T, logged func() string, want string) {
	t.Helper()
	for !strings.Contains(logged(), want) {
		select {
		case <-ctx.Done():
			t.Fatalf("logged is %q, want %q", logged(), want)
		case <-time.After(time.Millisecond): // not to be right, but to leave others the CPU
		}
	}
}

// TestServersOutliveStrangers: who connects to a server of one client, and hangs up or says
// nothing, is told of and does not end it; the client that comes afterwards does.
func TestServersOutliveStrangers(t *testing.T) {
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
					Addr: p.at(false, port), Connections: 2, Count: 2, Size: 9,
				})
			},
			func(ctx context.Context, p *party, to netip.AddrPort) (Result, error) {
				return p.DialCmatose(ctx, Cmatose{Addr: to, Connections: 2, Count: 2, Size: 9})
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
			t.Parallel()
			server, client := newRig(t, sim.Faults{})
			server.Silence = timeout.Scaled(3 * time.Second)
			logged := server.logs()
			ctx := within(t)
			at := server.at(false, port)
			ended := server.begin(t, func() (Result, error) { return end.serve(ctx, server) })
			client.connect(ctx, t, at).Destroy() // hangs up
			client.connect(ctx, t, at)           // says nothing
			for strings.Count(logged(), "client failed") < 2 && ctx.Err() == nil {
				select {
				case o := <-ended:
					t.Fatalf("the server has ended: %+v", o)
				case <-time.After(time.Millisecond): // not to be right, but to leave others the CPU
				}
			}
			result, err := end.dial(ctx, client, at)
			must(t, err)
			if o := <-ended; o.err != nil || o.Result.Messages != result.Messages {
				t.Errorf("server %+v, client %+v", o, result)
			}
		})
	}
}

// TestRpingsPlaceOfWhoLeft: a client that has left has its place no more, be its time-wait long: so
// one host can come again as often as it likes.
func TestRpingsPlaceOfWhoLeft(t *testing.T) {
	server, client := newRigWith(t, sim.Faults{}, cm.Options{Linger: -1, Machine: machine.Config{
		ResponseTimeout: 17, PacketLifeTime: 24, AckDelay: 1, // minutes of time-wait
	}})
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	logged := server.logs()
	at := server.at(false, RpingPort)
	ended := server.begin(t, func() (Result, error) {
		return Result{}, server.ServeRpings(ctx, Rping{Addr: at, Size: 64})
	})
	before := server.Dev.Resources(0).Total
	for n := range 2 * maxOfAddress {
		client.connect(ctx, t, at).Destroy()
		end := time.Now().Add(timeout.Scaled(20 * time.Second))
		for server.Dev.Resources(0).Total != before {
			if time.Now().After(end) {
				t.Fatalf("client %d has left and holds %+v", n, server.Dev.Resources(0).Total)
			}
			time.Sleep(100 * time.Microsecond) // as above
		}
	}
	if n := server.Manager.Usage().Connections; n < 2*maxOfAddress {
		t.Errorf("%d connections wait, so this proves nothing", n)
	}
	if s := logged(); strings.Contains(s, "refused") {
		t.Error(s)
	}
	cancel()
	if o := <-ended; !errors.Is(o.err, context.Canceled) {
		t.Errorf("ends with %v", o.err)
	}
}
