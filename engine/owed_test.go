package engine_test

import (
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// ends are ways for a QP to end.
var ends = map[string]func(*engine.QP) error{
	"ERR": func(qp *engine.QP) error {
		return qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
	},
	"RESET": func(qp *engine.QP) error {
		return qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState)
	},
	"Close": (*engine.QP).Close,
}

// seenAll is QPs of two devices in direct mode, each of which has seen a SEND of the peer and not
// acknowledged it yet. The second device has one transmit frame.
func seenAll(t *testing.T) (devB *engine.Device, a, b [4]*side) {
	t.Helper()
	network := newNetwork(t, 1, engine.NewSystemClock(), sim.Faults{})
	o := engine.Options{Direct: true}
	devA := openPort(t, network, 0, o)
	port, err := network.NewPort(sim.PortConfig{
		Name: "b", MAC: [6]byte{2, 0, 0, 0, 0, 2}, MTU: 4200, TxFrames: 1,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, 2})},
	})
	if err != nil {
		t.Fatal(err)
	}
	if devB, err = engine.OpenLink(port, port, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { devB.Close() })
	for i := range a {
		a[i], b[i] = newSide(t, devA), newSide(t, devB)
		connectWith(t, a[i], b[i], engine.ConnectOptions{SGIDIndex: 1, Timeout: 12})
		b[i].receives(t, 1)
	}
	for i := range a {
		err := a[i].qp.PostSend(&roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendSignaled,
			SGList: []roce.SGE{a[i].mr.SGE(0, 64)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	devA.Progress()
	devB.Progress() // one round, in which all came
	var done [1]roce.Completion
	for i := range b {
		if n, err := b[i].cq.Poll(done[:]); n != 1 || err != nil {
			t.Fatalf("QP %d has %d completions, %v", i, n, err)
		}
	}
	return devB, a, b
}

// allSent waits until all SENDs are complete.
func allSent(t *testing.T, a []*side) {
	t.Helper()
	var done [1]roce.Completion
	for i := range a {
		for n := 0; n == 0; {
			n, _ = a[i].cq.Poll(done[:])
		}
		if done[0].Status != roce.StatusSuccess {
			t.Errorf("SEND %d ended with %s", i, done[0].Status)
		}
	}
}

// TestLastAcknowledgementsLeaveOneByOne: QPs that end have acknowledged what their callers have
// seen, also when there are fewer transmit frames than QPs, so that not all of them have their
// turn at once.
func TestLastAcknowledgementsLeaveOneByOne(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			_, a, b := seenAll(t)
			for i := range b {
				if err := end(b[len(b)-1-i].qp); err != nil {
					t.Fatal(err)
				}
			}
			allSent(t, a[:])
		})
	}
}

// TestLastAcknowledgementsLeaveBeforeTheDevice is the same for a device that is closed.
func TestLastAcknowledgementsLeaveBeforeTheDevice(t *testing.T) {
	devB, a, _ := seenAll(t)
	if err := devB.Close(); err != nil {
		t.Fatal(err)
	}
	allSent(t, a[:])
}
