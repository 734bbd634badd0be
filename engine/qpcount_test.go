package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// countersOf are those that the device tells of a QP, nil for none.
func countersOf(t *testing.T, qp *engine.QP, d *engine.Device) map[string]uint64 {
	t.Helper()
	for _, row := range d.Resources(100).QPs {
		if row.LQPN == qp.QPN() {
			return row.Counters
		}
	}
	t.Fatalf("no QP 0x%06x", qp.QPN())
	return nil
}

// TestCountQPs: a QP counts by itself from when that is asked for; the device counts all of it,
// before, meanwhile and when the QP is gone.
func TestCountQPs(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	write := func() {
		t.Helper()
		a.send(t, writeTo(a, b, roce.OpWrite, 100))
		w.succeed(a.cq, 1)
	}
	write()
	before := counterOf(t, a.dev, "sent_pkts")
	if got := countersOf(t, a.qp, a.dev); got != nil || before == 0 {
		t.Fatalf("%v without a request, of %d packets", got, before)
	}
	a.dev.CountQPs(0)
	if got := countersOf(t, a.qp, a.dev); got != nil {
		t.Errorf("%v of no QP", got)
	}
	a.dev.CountQPs(10)
	if got := countersOf(t, a.qp, a.dev); len(got) > 0 {
		t.Errorf("%v at the beginning", got)
	}
	write()
	a.dev.CountQPs(10) // it goes on
	write()
	got := countersOf(t, a.qp, a.dev)
	for name, n := range got {
		if n == 0 || n > counterOf(t, a.dev, name) {
			t.Errorf("%s is %d, of %d", name, n, counterOf(t, a.dev, name))
		}
	}
	if got["sent_pkts"] != 2 || got["rcvd_pkts"] != 2 || got["sent_bytes"] < 2*100 ||
		got["rcvd_bytes"] == 0 {
		t.Errorf("%v of two WRITEs", got)
	}
	all := map[string]uint64{}
	for _, name := range []string{"sent_pkts", "sent_bytes", "rcvd_pkts", "rcvd_bytes"} {
		all[name] = counterOf(t, a.dev, name)
	}
	if all["sent_pkts"] != before+2 {
		t.Errorf("the device counts %d packets, not %d", all["sent_pkts"], before+2)
	}
	a.dev.CountQPsTogether()
	if got := countersOf(t, a.qp, a.dev); got != nil {
		t.Errorf("%v after the end of it", got)
	}
	a.dev.CountQPs(10) // from the beginning
	if got := countersOf(t, a.qp, a.dev); len(got) > 0 {
		t.Errorf("%v at the second beginning", got)
	}
	a.qp.Close()
	for name, n := range all {
		if now := counterOf(t, a.dev, name); now != n {
			t.Errorf("%s went from %d to %d with the QP", name, n, now)
		}
	}
}

// TestCountQPsFromTheBeginning: with the option a QP counts when it is made, and two of them
// count apart.
func TestCountQPsFromTheBeginning(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{CountQPs: true})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	idle := seatOn(t, w.devs[0], engine.QPInit{Type: roce.TypeUC})
	join(t, a, b, engine.ConnectOptions{})
	a.send(t, writeTo(a, b, roce.OpWrite, 5000))
	w.succeed(a.cq, 1)
	if got := countersOf(t, a.qp, a.dev); got["sent_pkts"] != counterOf(t, a.dev, "sent_pkts") ||
		got["sent_pkts"] == 0 {
		t.Errorf("%v", got)
	}
	if got := countersOf(t, idle.qp, a.dev); len(got) > 0 {
		t.Errorf("an idle QP counts %v", got)
	}
}
