package engine_test

import (
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestMessagesDoNotAllocate counts the allocations of whole messages, from post
// to completion, on both devices and the network between them.
func TestMessagesDoNotAllocate(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{Delay: roce.Microsecond})
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	var wcs [4]roce.Completion
	receive := &roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 8192)}}
	completed := 0
	done := func() bool {
		for _, s := range [2]*side{a, b} {
			n, err := s.cq.Poll(wcs[:])
			if err != nil {
				t.Error(err)
			}
			completed += n
		}
		return completed == 2
	}
	machines := []sim.Machine{devA, devB}
	for _, op := range []roce.Opcode{roce.OpSend, roce.OpWriteImm} {
		send := &roce.SendWR{
			Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 8192)},
			RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
		}
		message := func() {
			completed = 0
			err := errors.Join(b.qp.PostRecv(receive), a.qp.PostSend(send))
			if err != nil {
				t.Error(err)
			}
			if err := network.Run(clock, clock.Now()+roce.Second, done, machines...); err != nil {
				t.Error(err)
			}
		}
		for range 100 { // fill the free lists
			message()
		}
		if n := testing.AllocsPerRun(200, message); n != 0 {
			t.Errorf("%s: %v allocations a message", op, n)
		}
	}
}

// TestMTUTooSmall says how to raise it.
func TestMTUTooSmall(t *testing.T) {
	port, err := newNetwork(t, 1, &sim.VirtualClock{}, sim.Faults{}).
		NewPort(sim.PortConfig{Name: "tiny", MTU: 300})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := engine.OpenLink(port, port, engine.Options{})
	if err == nil {
		_ = dev.Close()
		t.Fatal("opened with an MTU of 300")
	}
	if want := "engine: MTU 300 of tiny is too small: the smallest path MTU of 256 " +
		"needs 336; raise it with: ip link set tiny mtu 1500"; err.Error() != want {
		t.Errorf("error %q", err)
	}
}
