package engine_test

import (
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk"
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

// A laggingLink is a port whose kernel keeps all frames until it was told to send so often.
type laggingLink struct {
	*simPort
	lag int
}

func (l *laggingLink) Reserve(dst []xsk.TxFrame) int {
	if l.lag > 0 {
		return 0
	}
	return l.simPort.Reserve(dst)
}

func (l *laggingLink) Flush() error {
	l.lag--
	return l.simPort.Flush()
}

// seenAll is QPs of two devices in direct mode, each of which has seen a SEND of the peer and not
// acknowledged it yet. The second device has one transmit frame.
func seenAll(t *testing.T) (link *laggingLink, devB *engine.Device, a, b [4]*side) {
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
	link = &laggingLink{simPort: port}
	if devB, err = engine.OpenLink(link, port, o); err != nil {
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
	return link, devB, a, b
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
			_, _, a, b := seenAll(t)
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
	_, devB, a, _ := seenAll(t)
	if err := devB.Close(); err != nil {
		t.Fatal(err)
	}
	allSent(t, a[:])
}

// TestLastAcknowledgementsWaitForFrames is the same when the kernel has all transmit frames, and
// gives them back some time after it was told to send.
func TestLastAcknowledgementsWaitForFrames(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			link, _, a, b := seenAll(t)
			for i := range b {
				link.lag = 20
				if err := end(b[len(b)-1-i].qp); err != nil {
					t.Fatal(err)
				}
			}
			allSent(t, a[:])
		})
	}
}

// TestStuckKernelHoldsUpNobody: a QP ends though the kernel gives no frame back.
func TestStuckKernelHoldsUpNobody(t *testing.T) {
	link, _, _, b := seenAll(t)
	const forever = 1 << 40
	i := 0
	for how, end := range ends {
		link.lag = forever
		if err := end(b[i].qp); err != nil {
			t.Fatal(err)
		}
		i++
		if tried := forever - link.lag; tried > 1000 {
			t.Errorf("%s: %d times", how, tried)
		}
	}
	link.lag = 0
}

// TestLastAcknowledgementBehindARead: what a QP owes is behind the response to a READ that takes
// more than one turn.
func TestLastAcknowledgementBehindARead(t *testing.T) {
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			network := newNetwork(t, 1, engine.NewSystemClock(), sim.Faults{})
			o := engine.Options{Direct: true}
			devA, devB := openPort(t, network, 0, o), openPort(t, network, 1, o)
			a, b := newSide(t, devA), newSide(t, devB)
			connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 12})
			b.receives(t, 1)
			for _, op := range []roce.Opcode{roce.OpRead, roce.OpSend} {
				wr := roce.SendWR{
					Opcode: op, Flags: roce.SendSignaled,
					SGList: []roce.SGE{a.mr.SGE(0, 64)}, RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr(),
				}
				if op == roce.OpRead {
					wr.SGList[0].Length = 200 << 10
				}
				if err := a.qp.PostSend(&wr); err != nil {
					t.Fatal(err)
				}
			}
			var done [1]roce.Completion
			for n := 0; n == 0; {
				devA.Progress()
				var err error
				if n, err = b.cq.Poll(done[:]); err != nil {
					t.Fatal(err)
				}
			}
			if err := end(b.qp); err != nil {
				t.Fatal(err)
			}
			allSent(t, []*side{a, a})
		})
	}
}
