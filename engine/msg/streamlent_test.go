package msg_test

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"xroce/engine/msg"
	"xroce/engine/sim"
)

// blocked is a reader that reads when it is told to, and says that it was called.
type blocked struct {
	called, release chan struct{}
}

func newBlocked() *blocked {
	return &blocked{called: make(chan struct{}, 1), release: make(chan struct{})}
}

func (b *blocked) Read(p []byte) (int, error) {
	b.called <- struct{}{}
	<-b.release
	for i := range p { // after all that happened, the memory is there
		p[i] = 1
	}
	return len(p), io.EOF
}

// TestSlowReadFrom: while ReadFrom waits for its reader, what was written before arrives, other
// writers wait until their deadline, and either close is seen by the peer at once.
func TestSlowReadFrom(t *testing.T) {
	for name, end := range map[string]func(*msg.Stream) error{
		"CloseWrite": (*msg.Stream).CloseWrite, "Close": (*msg.Stream).Close,
	} {
		_, _, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
		_, err := sa.Write(numbers(100))
		must(t, err)
		r, done := newBlocked(), make(chan error, 1)
		go func() {
			_, err := sa.ReadFrom(r)
			done <- err
		}()
		<-r.called
		_, err = io.ReadFull(sb, make([]byte, 100))
		must(t, err)
		must(t, sa.SetWriteDeadline(time.Now().Add(time.Millisecond)))
		var timeout net.Error
		if _, err := sa.Write(numbers(1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%s: write: %v", name, err)
		}
		must(t, end(sa))
		if n, err := sb.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		close(r.release)
		err = <-done
		want := map[string]error{"Close": net.ErrClosed, "CloseWrite": syscall.EPIPE}[name]
		if !errors.Is(err, want) {
			t.Errorf("%s: ReadFrom: %v", name, err)
		}
	}
}

// TestCloseWaitsForReaders: an endpoint does not take away memory that a reader writes to.
func TestCloseWaitsForReaders(t *testing.T) {
	a, b, sa, sb := newStreams(t, sim.Faults{}, msg.Options{})
	_, err := sb.Write(numbers(100))
	must(t, err)
	r, w := newBlocked(), newBlocked()
	done := make(chan error, 2)
	go func() {
		_, err := sa.ReadFrom(r)
		done <- err
	}()
	go func() {
		_, err := sa.WriteTo(writer(w.Read))
		done <- err
	}()
	<-r.called
	<-w.called
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	must(t, b.Close()) // and the connection is over, with slots lent
	select {
	case err := <-closed:
		t.Errorf("it was closed under readers: %v", err)
	default:
	}
	close(r.release)
	close(w.release)
	must(t, <-closed)
	for range 2 {
		if err := <-done; err == nil {
			t.Error("a stream of an endpoint that is closed goes on")
		}
	}
}
