package msg_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/xsk/xsktest/timeout"
)

var errBad = errors.New("bad")

// numbers is bytes that tell where they are from.
func numbers(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + i>>16)
	}
	return b
}

// TestCloseDelivers: what was written before Close can be read, by a peer that begins to read
// when the other endpoint has gone.
func TestCloseDelivers(t *testing.T) {
	for _, n := range []int{0, 1, 1024, 20_000} {
		a, _, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
		data := numbers(n)
		_, err := sa.Write(data)
		must(t, err)
		must(t, sa.Close())
		must(t, a.Close())
		got, err := io.ReadAll(sb)
		must(t, err)
		if !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d", len(got), n)
		}
		for ctx := within(t); n > 0; { // until it has noticed that the other has gone
			if _, err := sb.Write(data); errors.Is(err, syscall.ECONNRESET) {
				break
			} else if err != nil || ctx.Err() != nil {
				t.Fatalf("write to one that has closed: %v", err)
			}
		}
		must(t, sb.Close())
	}
}

// TestAcceptAfterTheEnd: who accepts a peer that has gone meanwhile has what that had sent.
func TestAcceptAfterTheEnd(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	l := listen(t, hosts)
	s, err := hosts[0].DialStream(within(t), netip.AddrPort(l.Addr().(msg.Addr)))
	must(t, err)
	data := numbers(1000)
	_, err = s.Write(data)
	must(t, err)
	must(t, s.Close())
	must(t, hosts[0].Close())
	accepted, err := l.Accept()
	must(t, err)
	got, err := io.ReadAll(accepted)
	must(t, err)
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes", len(got))
	}
	must(t, accepted.Close())
	must(t, l.Close())
}

// TestCloseLosesNothingOnABadWire: also when packets are lost, and the peer reads slowly.
func TestCloseLosesNothingOnABadWire(t *testing.T) {
	bad := sim.Faults{Drop: 0.02, Dup: 0.02, Reorder: 0.05, ReorderBy: 1e5}
	_, _, sa, sb := newStreams(t, bad, msg.Options{Linger: timeout.Scaled(time.Minute)})
	data := numbers(1 << 20)
	sent := make(chan error, 1)
	go func() {
		_, err := sa.Write(data)
		sent <- errors.Join(err, sa.Close())
	}()
	got, err := io.ReadAll(sb)
	must(t, err)
	must(t, <-sent)
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes are not those that were written", len(got))
	}
}

// TestCloseLingers: a peer that is not there does not hold up Close, and the endpoint's Close for
// as long as it was told only.
func TestCloseLingers(t *testing.T) {
	network, nodes := newNetwork(t, msg.Options{Linger: 50 * time.Millisecond})
	l := listen(t, nodes)
	sa, sb := connectStreams(t, nodes[0].Endpoint, l)
	must(t, l.Close())
	_, err := sa.Write(numbers(1))
	must(t, err)
	_, err = sb.Read(make([]byte, 1))
	must(t, err)
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	_, err = sa.Write(numbers(100))
	must(t, err)
	must(t, sa.Close())
	must(t, nodes[0].Close())
	must(t, network.SetFaults(sim.Faults{}))
	must(t, sb.Close())
}

// TestHalfClose: who has said all reads on.
func TestHalfClose(t *testing.T) {
	_, _, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
	question, answer := numbers(5000), numbers(50_000)
	_, err := sa.Write(question)
	must(t, err)
	must(t, sa.CloseWrite())
	must(t, sa.CloseWrite())
	if _, err := sa.Write(question); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write after CloseWrite: %v", err)
	}
	got, err := io.ReadAll(sb)
	must(t, err)
	if !bytes.Equal(got, question) {
		t.Errorf("%d bytes of the question", len(got))
	}
	_, err = sb.Write(answer)
	must(t, err)
	must(t, sb.CloseWrite())
	got, err = io.ReadAll(sa)
	must(t, err)
	if !bytes.Equal(got, answer) {
		t.Errorf("%d bytes of the answer", len(got))
	}
	must(t, sa.Close())
	must(t, sb.Close())
}

// TestClosedIsNetErrClosed: every call after Close says so, and those that wait return.
func TestClosedIsNetErrClosed(t *testing.T) {
	_, _, sa, _ := newStreams(t, sim.Faults{}, msg.Options{})
	waits := make(chan error)
	go func() {
		_, err := sa.Read(make([]byte, 1))
		waits <- err
	}()
	go func() {
		_, err := io.Copy(sa, endless{})
		waits <- err
	}()
	must(t, sa.Close())
	calls := map[string]error{
		"wait 1": <-waits, "wait 2": <-waits, "close": sa.Close(), "half": sa.CloseWrite(),
		"deadline": sa.SetDeadline(time.Now()),
	}
	_, calls["read"] = sa.Read(make([]byte, 1))
	_, calls["write"] = sa.Write(make([]byte, 1))
	_, calls["writeto"] = sa.WriteTo(io.Discard)
	_, calls["readfrom"] = sa.ReadFrom(endless{})
	for name, err := range calls {
		var op *net.OpError
		if !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) || op.Addr == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// endless has bytes for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestReaderThatDoesNotRead stops the writer, who holds no more than slots, until its deadline,
// which is set while it waits.
func TestReaderThatDoesNotRead(t *testing.T) {
	_, _, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
	done := make(chan int)
	go func() {
		n, err := sa.Write(numbers(10 << 20))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		done <- n
	}()
	must(t, sa.SetWriteDeadline(time.Now().Add(timeout.Scaled(time.Hour))))
	must(t, sa.SetWriteDeadline(time.Now().Add(timeout.Scaled(50*time.Millisecond))))
	n := <-done
	if most := 32*1024 + 8*32<<10; n > most {
		t.Errorf("%d bytes without a reader, of %d", n, most)
	}
	must(t, sa.SetWriteDeadline(time.Time{}))
	must(t, sa.CloseWrite())
	got, err := io.ReadAll(sb)
	must(t, err)
	if !bytes.Equal(got, numbers(n)) {
		t.Errorf("%d bytes of %d", len(got), n)
	}
}

// TestDialErrors name the address, and say what it was.
func TestDialErrors(t *testing.T) {
	_, nodes := newNetwork(t, msg.Options{})
	a, b := nodes[0], nodes[1]
	at := netip.AddrPortFrom(b.addr, streamPort)
	var op *net.OpError
	_, err := a.DialStream(within(t), at)
	if !errors.As(err, &op) || op.Op != "dial" || op.Addr.String() != at.String() {
		t.Errorf("nobody listens: %v", err)
	}
	l, err := b.Listen(at)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.Accept(ctx)
	}()
	if _, err = a.DialStream(within(t), at); !errors.As(err, &op) {
		t.Errorf("messages are spoken: %v", err)
	}
	cancel()
	<-done
	if _, err = b.ListenStream(at); !errors.As(err, &op) || op.Addr.String() != at.String() {
		t.Errorf("somebody listens: %v", err)
	}
	l.Close()
	if _, err = a.DialStream(ctx, at); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, c := range [][2]string{{"udp", at.String()}, {"tcp", "nonsense"}, {"tcp", ":nonsense"}} {
		if _, err = a.DialContext(t.Context(), c[0], c[1]); !errors.As(err, &op) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err = a.DialContext(within(t), "tcp", at.String()); !errors.As(err, &op) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestListenerCloses: who waits returns, and connections that nobody has accepted are closed.
func TestListenerCloses(t *testing.T) {
	_, nodes := newNetwork(t, msg.Options{})
	at := netip.AddrPortFrom(nodes[1].addr, streamPort)
	l, err := nodes[1].ListenStream(at)
	must(t, err)
	s, err := nodes[0].DialStream(within(t), at)
	must(t, err)
	must(t, l.Close())
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("close: %v", err)
	}
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("somebody answers")
	}
	must(t, nodes[0].Close()) // with a stream that is open
	if _, err := s.Write(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("write on an endpoint that is closed: %v", err)
	}
	must(t, s.Close())
	if _, err := nodes[0].DialStream(within(t), at); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("dial on an endpoint that is closed: %v", err)
	}
	must(t, nodes[0].Close())
}

// TestSlowPeer: one that asks for a connection and does not hear the answer holds up no other.
func TestSlowPeer(t *testing.T) {
	network, hosts := newNetwork(t, msg.Options{})
	slow, _ := newNode(t, network, 3, msg.Options{})
	server, client := [6]byte{2, 0, 0, 0, 0, 2}, [6]byte{2, 0, 0, 0, 0, 3}
	must(t, network.SetDirection(server, client, sim.Faults{Blocked: true}))
	answered := make(chan struct{}, 1)
	network.Observe(func(e *sim.Event) {
		if e.From == server && e.To == client {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	l := listen(t, hosts)
	ctx, cancel := context.WithCancel(within(t))
	dialled := make(chan error, 1)
	go func() {
		_, err := slow.DialStream(ctx, netip.AddrPort(l.Addr().(msg.Addr)))
		dialled <- err
	}()
	<-answered
	sa, sb := connectStreams(t, hosts[0].Endpoint, l)
	must(t, errors.Join(sa.Close(), sb.Close()))
	cancel()
	if err := <-dialled; !errors.Is(err, context.Canceled) {
		t.Errorf("the slow one: %v", err)
	}
	must(t, l.Close())
}
