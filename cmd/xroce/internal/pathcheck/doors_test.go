package pathcheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// freePort is a port that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestPortIsHeld: a stranger has the server open a port of the tools, and does not knock. It is
// open for the others too, and for him once.
func TestPortIsHeld(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	port := freePort(t)
	r.server.Ports = []int{port}
	conn := r.connect(t)
	ask := fmt.Sprintf(`{"listen":%d}`+"\n", port)
	if _, err := io.WriteString(conn, `{"xroce_check":1}`+"\n"+ask+ask); err != nil {
		t.Fatal(err)
	}
	l := newLine(conn)
	var h hello
	if err := l.hear(&h, timeout.Scaled(lineTime)); err != nil {
		t.Fatal(err)
	}
	var said report
	if err := l.hear(&said, timeout.Scaled(lineTime)); err != nil || said.Listen.Error != "" {
		t.Fatal(err, said)
	}
	c := r.dial(t)
	got, err := c.Run(t.Context(), []ToolPort{{Number: port, Tools: "pingpong, perf"}})
	if err != nil || !strings.Contains(got.text(), ": open") {
		t.Errorf("%v\n%s", err, got.text())
	}
	c.Close()
	r.awaitEnd(t)
	said = report{}
	err = l.hear(&said, timeout.Scaled(2*listenTime))
	if err != nil || !strings.Contains(said.Listen.Error, "asked for before") {
		t.Errorf("the second time: %v, %+v", err, said)
	}
	if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		t.Error(err)
	} else {
		l.Close()
	}
}

// TestOthersKnock: who tries the port all the time, from another address, is not the client.
func TestOthersKnock(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	port := freePort(t)
	r.server.Ports = []int{port}
	c := r.dial(t)
	answer, err := c.listensAt(t.Context(), port)
	if err != nil || answer.Error != "" {
		t.Fatal(answer, err)
	}
	at := fmt.Sprintf("127.0.0.1:%d", port)
	stranger := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 3 {
		conn, err := stranger.DialContext(t.Context(), "tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 1)) // it is hung up on
		conn.Close()
	}
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatalf("the client is kept out: %v", err)
	}
	conn.Close()
	if answer, err = c.listensAt(t.Context(), port); err != nil || answer.Error == "" {
		t.Errorf("the session goes on: %+v, %v", answer, err)
	}
}

// TestReceiveEnds: while datagrams of a stranger come all the time, the end is seen.
func TestReceiveEnds(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	const qkey = 7
	box, err := newMailbox(r.dev[1], qkey)
	if err != nil {
		t.Fatal(err)
	}
	defer box.close()
	stranger, err := newMailbox(r.dev[0], qkey)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.close()
	to := engine.AddressVector{DGID: wire.GIDFromAddr(r.dev[1].Port().Addrs[0])}
	if to.SGIDIndex, err = r.dev[0].SourceGID(to.DGID.Addr()); err != nil {
		t.Fatal(err)
	}
	ah, err := stranger.handle(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := stranger.send(t.Context(), ah, box.qp.QPN(), qkey, nil, smallDatagram)
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := box.receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	within, stop := context.WithTimeout(t.Context(), timeout.Scaled(10*time.Second))
	defer stop()
	for box.qp.Snapshot().RecvPosted > receives-2 && within.Err() == nil {
		r.dev[1].Progress() // until the other one has come
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := box.receive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
