package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

type clock struct{ start time.Time }

func (c clock) Now() roce.Time { return roce.Time(time.Since(c.start)) }

// A rig is two devices on a simulated network and a directory to receive to.
type rig struct {
	network *sim.Network
	dev     [2]*engine.Device
	dir     string
	store   *Store
	file    string
	content []byte
}

func newRig(t *testing.T, size int, faults sim.Faults) *rig {
	t.Helper()
	network, err := sim.NewNetwork(7, clock{time.Now()}, faults)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{network: network, content: make([]byte, size)}
	for n := range r.dev {
		port, err := network.NewPort(sim.PortConfig{
			Name: "xr", MAC: [6]byte{2, 0, 0, 0, 0, byte(n)}, MTU: 4200,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)})},
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.dev[n], err = engine.OpenLink(port, port, engine.Options{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.dev[n].Close() })
	}
	r.serve(t, StoreConfig{})
	_, _ = rand.Read(r.content)
	r.file = filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(r.file, r.content, 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// serve makes the directory to receive to another one.
func (r *rig) serve(t *testing.T, c StoreConfig) {
	t.Helper()
	r.dir = t.TempDir()
	store, err := OpenStore(r.dir, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r.store = store
}

// run transfers the file and returns how both ends ended.
func (r *rig) run(
	t *testing.T, send SendConfig, receive ReceiveConfig, sendCtx, receiveCtx context.Context,
) (result Result, sendErr, receiveErr error) {
	t.Helper()
	from, to := net.Pipe()
	send.File, send.GIDIndex = r.file, peer.AutoGID
	receive.Store, receive.GIDIndex = r.store, peer.AutoGID
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, receiveErr = Receive(receiveCtx, r.dev[1], to, receive)
		to.Close()
	}()
	result, sendErr = Send(sendCtx, r.dev[0], from, send)
	from.Close()
	<-done
	return result, sendErr, receiveErr
}

// empty fails the test when anything is in the directory.
func (r *rig) empty(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 0 {
		t.Errorf("left in the directory: %v, %v", entries, err)
	}
}

func TestTransferOverALossyNetwork(t *testing.T) {
	r := newRig(t, 6*ChunkSize+17, sim.Faults{Drop: 0.005, Dup: 0.005, Corrupt: 0.005})
	result, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{},
		t.Context(), t.Context())
	if sendErr != nil || receiveErr != nil {
		t.Fatal(sendErr, receiveErr)
	}
	got, err := os.ReadFile(filepath.Join(r.dir, result.Path))
	if err != nil || !bytes.Equal(got, r.content) {
		t.Errorf("the file differs, %v", err)
	}
	if c := r.network.Counts(); c.Dropped == 0 || c.Corrupted == 0 {
		t.Errorf("the network did nothing: %+v", c)
	}
}

func TestChangedFileIsNoticed(t *testing.T) {
	for name, change := range map[string]func(*os.File) error{
		"longer": func(f *os.File) error {
			_, err := f.WriteAt([]byte("x"), 3*Slots*ChunkSize)
			return err
		},
		"shorter": func(f *os.File) error { return f.Truncate(100) },
		"touched": func(f *os.File) error {
			return os.Chtimes(f.Name(), time.Time{}, time.Unix(1_000_000_000, 0))
		},
	} {
		r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
		f, err := os.OpenFile(r.file, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		changed := false
		_, sendErr, receiveErr := r.run(t, SendConfig{
			Path: "x",
			Progress: func(done, total int64) {
				if !changed {
					changed = true
					if err := change(f); err != nil {
						t.Error(err)
					}
				}
			},
		}, ReceiveConfig{}, t.Context(), t.Context())
		f.Close()
		if !errors.Is(sendErr, ErrChanged) {
			t.Errorf("%s: sender: %v", name, sendErr)
		}
		if !errors.Is(receiveErr, ErrPeer) || !strings.Contains(receiveErr.Error(), "changed") {
			t.Errorf("%s: receiver: %v", name, receiveErr)
		}
		r.empty(t)
	}
}

// TestPathsOutside asks for paths that the command would not even send.
func TestPathsOutside(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	for _, path := range []string{"../x", "/tmp/x", "a/../../x", ".."} {
		_, sendErr, receiveErr := r.run(t, SendConfig{Path: path}, ReceiveConfig{},
			t.Context(), t.Context())
		if !errors.Is(receiveErr, ErrPath) {
			t.Errorf("%s: receiver: %v", path, receiveErr)
		}
		if !errors.Is(sendErr, ErrPeer) || !strings.Contains(sendErr.Error(), "not below") {
			t.Errorf("%s: sender: %v", path, sendErr)
		}
		r.empty(t)
	}
}

func TestReceiverStops(t *testing.T) {
	r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
	ctx, cancel := context.WithCancel(t.Context())
	_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{
		Progress: func(done, total int64) { cancel() },
	}, t.Context(), ctx)
	if !errors.Is(sendErr, ErrPeer) || !errors.Is(receiveErr, context.Canceled) {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}

func TestSenderStops(t *testing.T) {
	r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
	ctx, cancel := context.WithCancel(t.Context())
	_, sendErr, receiveErr := r.run(t, SendConfig{
		Path: "x", Progress: func(done, total int64) { cancel() },
	}, ReceiveConfig{}, ctx, t.Context())
	if !errors.Is(sendErr, context.Canceled) || !errors.Is(receiveErr, ErrPeer) {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}

// TestNetworkBreaks cuts the RDMA network while TCP stays: the sender gives up
// when its retries are used up, and tells the receiver.
func TestNetworkBreaks(t *testing.T) {
	r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
	_, sendErr, receiveErr := r.run(t, SendConfig{
		Path: "x",
		Progress: func(done, total int64) {
			if err := r.network.SetFaults(sim.Faults{Drop: 1}); err != nil {
				t.Error(err)
			}
		},
	}, ReceiveConfig{}, t.Context(), t.Context())
	// Either end may be the first whose retries are used up.
	if !errors.Is(sendErr, roce.ErrFailed) && !errors.Is(receiveErr, roce.ErrFailed) {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	if sendErr == nil || receiveErr == nil {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}
