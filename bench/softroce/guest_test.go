package softroce

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"xroce/bench/softroce/order"
)

// fakeAgent answers orders as a test says, and hands out the ones it got.
func fakeAgent(t *testing.T, answer func(o order.Order, tell func(order.Notice))) (
	v *VM, agent net.Conn,
) {
	t.Helper()
	host, agent := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in, out := json.NewDecoder(agent), json.NewEncoder(agent)
		tell := func(n order.Notice) {
			if err := out.Encode(n); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Log(err) // the host has hung up
			}
		}
		for {
			var o order.Order
			if in.Decode(&o) != nil {
				return
			}
			if o.ID == 0 {
				tell(order.Notice{})
				continue
			}
			answer(o, tell)
		}
	}()
	v = &VM{
		guest: newGuest(host), console: &tail{limit: 100},
		qemu: &exec.Cmd{}, exited: make(chan struct{}),
	}
	t.Cleanup(func() {
		agent.Close()
		if err := v.guest.close(); err != nil {
			t.Error(err)
		}
		<-ended // it logs to the test
	})
	if err := v.guest.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return v, agent
}

func TestRunGathersOutput(t *testing.T) {
	v, _ := fakeAgent(t, func(o order.Order, tell func(order.Notice)) {
		tell(order.Notice{ID: o.ID, Output: []byte("one ")})
		tell(order.Notice{ID: o.ID + 100, Output: []byte("nobody's")})
		tell(order.Notice{ID: o.ID, Output: []byte(o.Start)})
		tell(order.Notice{ID: o.ID, Ended: true, Status: 3})
	})
	for _, command := range []string{"a", "b"} {
		out, status, err := v.Run(t.Context(), command)
		if out != "one "+command || status != 3 || err != nil {
			t.Errorf("%q, %d, %v", out, status, err)
		}
	}
}

func TestWaitKillsWhenTheContextEnds(t *testing.T) {
	killed := make(chan order.Order, 1)
	v, _ := fakeAgent(t, func(o order.Order, tell func(order.Notice)) {
		if o.Signal != 0 {
			killed <- o
			return
		}
		tell(order.Notice{ID: o.ID, Output: []byte("up")})
	})
	c, err := v.Start("forever")
	if err != nil {
		t.Fatal(err)
	}
	if !c.Await(t.Context(), func(s string) bool { return strings.Contains(s, "up") }) {
		t.Fatal("it did not come up")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c.Await(ctx, func(string) bool { return false }) {
		t.Error("what never holds was awaited")
	}
	if _, err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if o := <-killed; o.ID != c.id || o.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v", o)
	}
}

func TestVMThatIsGone(t *testing.T) {
	v, agent := fakeAgent(t, func(order.Order, func(order.Notice)) {})
	c, err := v.Start("forever")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.console.Write([]byte("Kernel panic")); err != nil {
		t.Fatal(err)
	}
	agent.Close()
	close(v.exited)
	if _, err := c.Wait(t.Context()); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	<-c.Done() // who waits for this alone does not wait for ever
	if err := v.Check(t.Context()); !errors.Is(err, ErrGone) ||
		!strings.Contains(err.Error(), "Kernel panic") {
		t.Error(err)
	}
	if err := v.Check(t.Context()); errors.Is(err, ErrPanic) {
		t.Errorf("%v: a panic that the kernel did not call fatal", err)
	}
	if _, err := v.console.Write([]byte(" - not syncing: Fatal exception")); err != nil {
		t.Fatal(err)
	}
	if err := v.Check(t.Context()); !errors.Is(err, ErrGone) || !errors.Is(err, ErrPanic) {
		t.Error(err)
	}
	if _, err := v.Start("more"); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

// TestPanicThatIsReadLate: the agent goes before the last words of the kernel have come, which are
// waited for.
func TestPanicThatIsReadLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, agent := fakeAgent(t, func(order.Order, func(order.Notice)) {})
		agent.Close()
		checked := make(chan error, 1)
		go func() { checked <- v.Check(t.Context()) }()
		synctest.Wait()
		if len(checked) > 0 {
			t.Error("judged before QEMU has ended")
		}
		if _, err := v.console.Write([]byte(panicLine)); err != nil {
			t.Fatal(err)
		}
		close(v.exited)
		if err := <-checked; !errors.Is(err, ErrPanic) {
			t.Error(err)
		}
	})
}

// TestVMThatStandsStill: one that is there and says nothing is gone as well.
func TestVMThatStandsStill(t *testing.T) {
	v, _ := fakeAgent(t, func(o order.Order, tell func(order.Notice)) {
		if o.Signal == 0 && o.Start == "true" && o.ID > 1 {
			return
		}
		tell(order.Notice{ID: o.ID, Ended: true})
	})
	if err := v.Check(t.Context()); err != nil {
		t.Errorf("a VM that answers: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := v.Check(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("a VM that does not answer: %v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	tail := &tail{limit: 5}
	for _, s := range []string{"abc", "de\r", "fgh"} {
		if n, err := tail.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := tail.String(); got != "efgh" {
		t.Errorf("%q", got)
	}
}
