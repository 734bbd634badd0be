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

	"xroce/engine/sim"
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

// elsewhere connects from another address of this host.
func elsewhere(t *testing.T, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := d.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestPortIsHeld: a stranger has the server open a port of the tools, and does not knock. It is
// open for the others, too.
func TestPortIsHeld(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	port := freePort(t)
	r.server.Ports = []int{port}
	conn := elsewhere(t, r.listener.Addr().String())
	ask := fmt.Sprintf(`{"xroce_check":1}`+"\n"+`{"listen":%d}`+"\n", port)
	if _, err := io.WriteString(conn, ask); err != nil {
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
	got, err := r.dial(t).Run(t.Context(), []ToolPort{{Number: port, Tools: "pingpong, perf"}})
	if err != nil || !strings.Contains(got.text(), ": open") {
		t.Errorf("%v\n%s", err, got.text())
	}
}

// TestTwoOfAHostKnock: the first connection of a host is that of one of its clients, and the port
// is still open for the other.
func TestTwoOfAHostKnock(t *testing.T) {
	r := newRig(t, sim.Faults{}, 1500, 1500)
	port := freePort(t)
	r.server.Ports = []int{port}
	clients := []*Client{r.dial(t), r.dial(t)}
	for _, c := range clients {
		answer, err := c.listensAt(t.Context(), port)
		if err != nil || answer.Error != "" {
			t.Fatal(answer, err)
		}
	}
	for range clients {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Read(make([]byte, 1)) // it is hung up on
		conn.Close()
	}
	for _, c := range clients { // whose sessions go on
		if answer, err := c.listensAt(t.Context(), port); err != nil || answer.Error == "" {
			t.Errorf("%+v, %v", answer, err)
		}
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
	for range 3 {
		_, _ = elsewhere(t, at).Read(make([]byte, 1)) // it is hung up on
	}
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatalf("the client is kept out: %v", err)
	}
	conn.Close()
	if answer, err = c.listensAt(t.Context(), port); err != nil || answer.Error == "" {
		t.Errorf("the second time it is told %+v, %v", answer, err)
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
	ah := r.toServer(t, stranger)
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
