package engine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

var writeTrace = flag.Bool("write-trace", false, "write testdata/trace.golden anew")

// traceOf returns the trace of a QP with 1 as its number, line by line.
func traceOf(t *testing.T, qp *engine.QP) string {
	t.Helper()
	var out bytes.Buffer
	if err := qp.WriteTrace(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	own := fmt.Sprintf(`"qpn":%d,`, qp.QPN())
	return strings.ReplaceAll(out.String(), own, `"qpn":1,`)
}

// TestTraceGolden compares the traces of a WRITE whose first packet is lost, of a
// datagram with a wrong Q_Key, and of a QP that is flushed. Write the file anew
// with
//
//	go test ./engine -run TestTraceGolden -write-trace
func TestTraceGolden(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	a.qp.StartTrace(100)
	for _, s := range []*seat{a, b} {
		if err := s.qp.Init(rights); err != nil {
			t.Fatal(err)
		}
	}
	ends := [2]engine.Endpoint{
		{QPN: a.qp.QPN(), PSN: 100, GID: w.devs[0].GIDs()[gidIPv4]},
		{QPN: b.qp.QPN(), PSN: 0xffffff, GID: w.devs[1].GIDs()[gidIPv4]},
	}
	for i, s := range []*seat{a, b} {
		o := engine.ConnectOptions{SGIDIndex: gidIPv4}
		if err := s.qp.Connect(t.Context(), ends[i], ends[1-i], o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.network.SetRules(sim.Rule{Nth: 1, Times: 1}); err != nil {
		t.Fatal(err)
	}
	wr := writeTo(a, b, roce.OpWrite, 5000)
	wr.WRID = 1<<64 - 1
	a.send(t, wr)
	w.succeed(a.cq, 1)

	c := datagramSeat(t, w.devs[0], engine.QPInit{})
	d := datagramSeat(t, w.devs[1], engine.QPInit{})
	d.qp.StartTrace(100)
	bad := c.datagram(c.handle(t, w.devs[1].GIDs()[gidIPv4], gidIPv4), d.qp.QPN(), 10)
	bad.RemoteQKey++
	c.send(t, bad)
	w.run(func() bool { return counterOf(t, w.devs[1], "drop_bad_qkey") == 1 })
	d.recv(t, 7, 0, 100)
	if err := d.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState); err != nil {
		t.Fatal(err)
	}

	got := traceOf(t, a.qp) + "\n" + traceOf(t, d.qp)
	drawn := fmt.Sprintf(`"psn":%d`, c.qp.Snapshot().NextPSN-1) // at random
	got = strings.ReplaceAll(got, drawn, `"psn":2`)
	file := filepath.Join("testdata", "trace.golden")
	if *writeTrace {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", file, got)
	}
}

// TestTraceKeepsTheLast events and says how many it lost; stopping ends it.
func TestTraceKeepsTheLast(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	if events, lost := a.qp.Trace(); events != nil || lost != 0 || traceOf(t, a.qp) != "" {
		t.Errorf("%d events and %d lost of a QP that is not traced", len(events), lost)
	}
	a.qp.StartTrace(2)
	a.send(t, writeTo(a, b, roce.OpWrite, 1)) // sent, received, completed
	w.succeed(a.cq, 1)
	events, lost := a.qp.Trace()
	if len(events) != 2 || lost != 1 || events[0].Kind != roce.TraceReceived ||
		events[1].Kind != roce.TraceCompleted {
		t.Errorf("%v, %d lost", events, lost)
	}
	a.qp.StartTrace(0)
	if events, _ := a.qp.Trace(); events != nil {
		t.Errorf("%d events of a QP that is not traced any more", len(events))
	}
	if err := a.qp.WriteTrace(failingWriter{}); err != nil {
		t.Errorf("nothing to write, and yet: %v", err)
	}
	a.qp.StartTrace(1)
	a.send(t, writeTo(a, b, roce.OpWrite, 1))
	w.succeed(a.cq, 1)
	if err := a.qp.WriteTrace(failingWriter{}); err == nil {
		t.Error("the writer failed and nobody says so")
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }
