package engine_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/xsk/xsktest/timeout"
)

// A side is one end of a connection between two devices of a test.
type side struct {
	dev *engine.Device
	pd  *engine.PD
	cq  *engine.CQ
	qp  *engine.QP
	mr  *engine.MR
	end engine.Endpoint
}

const regionSize = 1 << 20

var allAccess = mem.LocalWrite | mem.RemoteWrite | mem.RemoteRead

// newSide makes everything that one end of a connection needs on a device.
func newSide(t testing.TB, dev *engine.Device) *side {
	t.Helper()
	return newSideOf(t, dev, engine.QPInit{})
}

// newSideOf is the same with a QP of this kind, but for its CQs.
func newSideOf(t testing.TB, dev *engine.Device, init engine.QPInit) *side {
	t.Helper()
	s := &side{dev: dev, pd: dev.AllocPD()}
	var err error
	if s.cq, err = dev.CreateCQ(1024 + init.MaxSendWR); err != nil {
		t.Fatal(err)
	}
	if s.mr, err = dev.RegMR(s.pd, make([]byte, regionSize), allAccess); err != nil {
		t.Fatal(err)
	}
	init.SendCQ, init.RecvCQ = s.cq, s.cq
	if s.qp, err = dev.CreateQP(s.pd, init); err != nil {
		t.Fatal(err)
	}
	err = s.qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: allAccess},
		roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
	if err != nil {
		t.Fatal(err)
	}
	if s.end, err = dev.Endpoint(s.qp, 1); err != nil {
		t.Fatal(err)
	}
	return s
}

// connect joins two sides.
func connect(t testing.TB, a, b *side) {
	t.Helper()
	connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1})
}

// patientTimeout is the local ACK timeout of connections whose test says nothing of it:
// 1.07 s, eight times. The other end is a thread of the same machine, which may be busy.
const patientTimeout = 18

// connectWith is connect with options of both ends.
func connectWith(t testing.TB, a, b *side, o engine.ConnectOptions) {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patientTimeout
	}
	for _, c := range []struct{ from, to *side }{{a, b}, {b, a}} {
		if err := c.from.qp.Connect(t.Context(), c.from.end, c.to.end, o); err != nil {
			t.Fatal(err)
		}
	}
}

// simPair makes two devices joined by a simulated network.
func simPair(t testing.TB, network *sim.Network, o engine.Options) (a, b *engine.Device) {
	t.Helper()
	return openPort(t, network, 0, o), openPort(t, network, 1, o)
}

// newPort adds the i-th port to a network.
func newPort(t testing.TB, network *sim.Network, i int) *sim.Port {
	t.Helper()
	port, err := network.NewPort(sim.PortConfig{
		Name: string(rune('a' + i)), MAC: [6]byte{2, 0, 0, 0, 0, byte(i + 1)}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})},
	})
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// openPort opens a device on the i-th port of a network.
func openPort(t testing.TB, network *sim.Network, i int, o engine.Options) *engine.Device {
	t.Helper()
	port := newPort(t, network, i)
	dev, err := engine.OpenLink(port, port, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// wait takes n completions of success.
func (s *side) wait(t *testing.T, n int) []roce.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	wcs := make([]roce.Completion, n)
	for got := 0; got < n; {
		m, err := s.cq.Wait(ctx, wcs[got:])
		if err != nil {
			t.Fatalf("after %d of %d completions: %v; %v", got, n, err, s.qp.Snapshot())
		}
		for _, wc := range wcs[got : got+m] {
			if wc.Status != roce.StatusSuccess {
				t.Fatalf("work request %d: %s", wc.WRID, wc.Status)
			}
		}
		got += m
	}
	return wcs
}

// see makes what the device stored visible to the caller, and the other way. A one-sided operation
// tells its target nothing, so the race detector, and the memory model, need a
// lock that both have held.
func (s *side) see() { s.qp.Snapshot() }

// exchange runs each operation once and compares every byte.
func exchange(t *testing.T, a, b *side, size int) {
	t.Helper()
	for _, op := range []roce.Opcode{
		roce.OpSend, roce.OpSendImm, roce.OpWrite,
		roce.OpWriteImm, roce.OpRead,
	} {
		a.see() // what came before, of which nobody was told
		b.see()
		_, _ = rand.Read(a.mr.Bytes()[:size])
		_, _ = rand.Read(b.mr.Bytes()[:size])
		from, to := a.mr.Bytes()[:size], b.mr.Bytes()[:size]
		if op == roce.OpRead {
			from, to = to, from
		}
		want := bytes.Clone(from)
		b.see()
		receives := op == roce.OpSend || op == roce.OpSendImm || op == roce.OpWriteImm
		if receives {
			err := b.qp.PostRecv(&roce.RecvWR{WRID: 7, SGList: []roce.SGE{b.mr.SGE(0, size)}})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := a.qp.PostSend(&roce.SendWR{
			WRID: 9, Opcode: op, Flags: roce.SendSignaled, Imm: 0xabad1dea,
			SGList: []roce.SGE{a.mr.SGE(0, size)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
		})
		if err != nil {
			t.Fatal(err)
		}
		a.wait(t, 1)
		if receives {
			b.wait(t, 1)
		}
		b.see()
		if !bytes.Equal(to, want) || !bytes.Equal(from, want) {
			t.Fatalf("%s of %d bytes: data differs", op, size)
		}
	}
}

func newNetwork(t testing.TB, seed uint64, clock sim.Clock, f sim.Faults) *sim.Network {
	t.Helper()
	network, err := sim.NewNetwork(seed, clock, f)
	if err != nil {
		t.Fatal(err)
	}
	return network
}

func TestEveryOperationOnTheSimulatedWire(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	devA, devB := simPair(t, network, engine.Options{Clock: clock})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	for _, size := range []int{0, 1, 64, 4096, 4097, regionSize} {
		exchange(t, a, b, size)
	}
}

// TestManyPosters has goroutines post to one QP and poll one CQ at once.
func TestManyPosters(t *testing.T) {
	const posters, each = 4, 200
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	var wg sync.WaitGroup
	for range posters {
		wg.Go(func() {
			for i := 0; i < each; {
				err := a.qp.PostSend(&roce.SendWR{
					Opcode: roce.OpWrite, Flags: roce.SendSignaled,
					SGList: []roce.SGE{a.mr.SGE(0, 64)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
				})
				switch {
				case err == nil:
					i++
				case errors.Is(err, roce.ErrQueueFull):
					runtime.Gosched()
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	a.wait(t, posters*each)
	wg.Wait()
}

// TestDeregister takes memory away under traffic: the QP fails, nothing else
// does, and after Deregister not a byte changes.
func TestDeregister(t *testing.T) {
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	// A test that is not scheduled takes the memory away too late, and tries again.
	for tries := 1; !deregistersUnderTraffic(t, devA, devB); tries++ {
		if tries == 50 {
			t.Fatalf("the transfer was over before Deregister, %d times", tries)
		}
	}
}

// deregistersUnderTraffic reports whether the transfer had not ended before.
func deregistersUnderTraffic(t *testing.T, devA, devB *engine.Device) bool {
	t.Helper()
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = 0xff
	}
	postWrites(t, a, b, 100, regionSize)
	b.mr.Deregister()
	clear(b.mr.Bytes())
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	var statuses []roce.Status
	for len(statuses) < 100 {
		var wcs [100]roce.Completion
		n, err := a.cq.Wait(ctx, wcs[:])
		if err != nil {
			t.Fatal(err)
		}
		for _, wc := range wcs[:n] {
			statuses = append(statuses, wc.Status)
		}
	}
	for i, v := range b.mr.Bytes() {
		if v != 0 {
			t.Fatalf("byte %d was written after Deregister", i)
		}
	}
	if slices.Max(statuses) == roce.StatusSuccess {
		return false
	}
	if !slices.Contains(statuses, roce.StatusRemAccessErr) {
		t.Errorf("statuses %v", statuses)
	}
	return true
}
