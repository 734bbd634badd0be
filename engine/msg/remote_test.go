package msg_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
)

const allRights = mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic

// TestRemote: what a peer has exported is written, read and changed without it, from many
// goroutines, beside messages, also when frames are lost.
func TestRemote(t *testing.T) {
	_, b, ca, cb := newPair(t, sim.Faults{Drop: 0.002}, msg.Options{})
	ctx := within(t)
	memory := make([]byte, 1<<20)
	x, err := b.Export("table", memory, allRights)
	must(t, err)
	const goroutines, rounds = 4, 20
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			remote, err := ca.Import(ctx, "table")
			if err != nil || remote.Len() != len(memory) {
				t.Errorf("%v: %v", remote, err)
				return
			}
			at := (g + 1) * 100_000
			for n := range rounds {
				data := bytes.Repeat([]byte{byte(g), byte(n)}, 20_000)
				got := make([]byte, len(data))
				_, added := remote.FetchAdd(ctx, 8, 3)
				err := errors.Join(remote.Put(ctx, at, data), remote.Get(ctx, at, got), added)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("round %d: %v", n, err)
					return
				}
			}
		})
	}
	for range rounds { // one that finds no large slot waits for its receive
		receive := &msg.Receive{Buffers: [][]byte{make([]byte, 50_000)}, From: cb}
		must(t, b.PostReceive(receive))
		must(t, ca.Send(ctx, make([]byte, 50_000)))
		must(t, receive.Wait(ctx))
	}
	running.Wait()
	remote, err := ca.Import(ctx, "table")
	must(t, err)
	old, err := remote.CompareSwap(ctx, 8, 3*goroutines*rounds, 1)
	if err != nil || old != 3*goroutines*rounds {
		t.Errorf("%d was there: %v", old, err)
	}
	must(t, x.Close())
	must(t, x.Close())
	if got := binary.NativeEndian.Uint64(memory[8:]); got != 1 {
		t.Errorf("%d is there", got)
	}
	if _, err := ca.Import(ctx, "table"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}
}

// TestExportRefuses: what cannot be exported, imported or used is refused by name, here, and the
// connection goes on.
func TestExportRefuses(t *testing.T) {
	_, b, ca, cb := newPair(t, sim.Faults{}, msg.Options{})
	ctx := within(t)
	memory := make([]byte, 100)
	for name, want := range map[string]error{
		"": rmsg.ErrInvalid, string(make([]byte, 65)): rmsg.ErrInvalid, "taken": msg.ErrQueued,
	} {
		if want == msg.ErrQueued {
			_, err := b.Export(name, memory, allRights)
			must(t, err)
		}
		if _, err := b.Export(name, memory, allRights); !errors.Is(err, want) {
			t.Errorf("%q: %v", name, err)
		}
		_, err := ca.Import(ctx, name)
		if want != msg.ErrQueued && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q is there: %v", name, err)
		}
	}
	for _, rights := range []mem.Access{0, mem.LocalWrite, mem.MWBind} {
		if _, err := b.Export("rights", memory, rights); !errors.Is(err, rmsg.ErrInvalid) {
			t.Errorf("%v: %v", rights, err)
		}
	}
	if _, err := b.Export("nothing", nil, allRights); !errors.Is(err, rmsg.ErrInvalid) {
		t.Error(err)
	}
	if err := b.Handle(65534, nil); !errors.Is(err, rmsg.ErrInvalid) {
		t.Error(err)
	}
	remote, err := ca.Import(ctx, "taken")
	must(t, err)
	for _, at := range []int{-1, 97, 101} {
		if err := remote.Put(ctx, at, make([]byte, 4)); !errors.Is(err, rmsg.ErrInvalid) {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if _, err := remote.FetchAdd(ctx, 4, 1); !errors.Is(err, rmsg.ErrInvalid) {
		t.Error(err)
	}
	must(t, remote.Get(ctx, 100, nil))
	must(t, ca.Send(ctx, []byte("still here")))
	_, err = cb.Receive(ctx, make([]byte, 10))
	must(t, err)
}

// TestExportsEnd: a right that was not given, and a key that is out of use, end the connection of
// who tries, not that of another peer, and change nothing.
func TestExportsEnd(t *testing.T) {
	for name, try := range map[string]func(x *msg.Export, r *msg.Remote) error{
		"right": func(_ *msg.Export, r *msg.Remote) error {
			return r.Put(within(t), 0, []byte("changed"))
		},
		"key": func(x *msg.Export, r *msg.Remote) error {
			must(t, x.Close())
			return r.Get(within(t), 0, make([]byte, 7))
		},
	} {
		_, hosts := newNetwork(t, msg.Options{})
		ca, cb := connect(t, hosts)
		other, peer := connect(t, hosts)
		memory := []byte("as before")
		x, err := hosts[1].Export("table", memory, mem.RemoteRead)
		must(t, err)
		remote, err := ca.Import(within(t), "table")
		must(t, err)
		if err := try(x, remote); err == nil {
			t.Errorf("%s: it was done", name)
		}
		<-ca.Done()
		<-cb.Done()
		if string(memory) != "as before" {
			t.Errorf("%s: %s", name, memory)
		}
		if err := remote.Get(within(t), 0, make([]byte, 7)); err == nil {
			t.Errorf("%s: it was read when the connection was over", name)
		}
		if _, err := ca.Import(within(t), "table"); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: import when the connection is over: %v", name, err)
		}
		must(t, other.Send(within(t), nil))
		_, err = peer.Receive(within(t), nil)
		must(t, err)
	}
}

// TestRemoteWithoutAPeer: a call returns when its context ends, at the latest after CancelTimeout,
// and the connection has ended if it was under way; one that asks for an export is told of the end.
func TestRemoteWithoutAPeer(t *testing.T) {
	network, hosts := newNetwork(t, msg.Options{CancelTimeout: 20 * time.Millisecond})
	ca, _ := connect(t, hosts)
	_, err := hosts[1].Export("table", make([]byte, 100), allRights)
	must(t, err)
	remote, err := ca.Import(within(t), "table")
	must(t, err)
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	asks := make(chan error, 1)
	go func() {
		_, err := ca.Import(t.Context(), "table")
		asks <- err
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err = remote.Put(ended, 0, make([]byte, 8))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, msg.ErrCancelTimeout) {
		t.Error(err)
	}
	if err := <-asks; !errors.Is(err, msg.ErrCancelTimeout) {
		t.Error(err)
	}
	<-ca.Done()
	must(t, network.SetFaults(sim.Faults{}))
}

// TestRemoteOfRails: memory is used by all rails, also when one is lost and comes back: what was
// being read is read by the other one, what was being written says that nobody knows.
func TestRemoteOfRails(t *testing.T) {
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	memory := bytes.Repeat([]byte("memory"), 100_000)
	ctx := within(t)
	_, err := w.endpoints[1].Export("table", memory, allRights)
	must(t, err)
	remote, err := w.ca.Import(ctx, "table")
	must(t, err)
	stop, results := make(chan struct{}), make(chan error, 2)
	use := func(do func() error) {
		for {
			select {
			case <-stop:
				results <- nil
				return
			default:
			}
			if err := do(); err != nil {
				results <- err
				return
			}
		}
	}
	got := make([]byte, len(memory)/2)
	go use(func() error {
		clear(got)
		err := remote.Get(ctx, 0, got)
		if err == nil && !bytes.Equal(got, memory[:len(got)]) {
			return errors.New("other bytes were read")
		}
		return err
	})
	unknown := 0
	go use(func() error {
		err := remote.Put(ctx, len(got), make([]byte, 200_000))
		if errors.Is(err, rmsg.ErrUnknown) {
			unknown++
			return nil
		}
		return err
	})
	for round := range 2 {
		w.cut(t, round, true)
		w.up(t, 1)
		w.cut(t, round, false)
		w.up(t, 2)
	}
	close(stop)
	for range cap(results) {
		must(t, <-results)
	}
	t.Logf("%d calls of Put ended with a rail", unknown)
}
