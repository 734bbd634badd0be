package transfer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
)

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

// TestNetworkBreaks for good: the sender gives up when its retries are used up, and so does the
// receiver.
func TestNetworkBreaks(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 3*Slots*ChunkSize, sim.Faults{})
	_, sendErr, receiveErr := r.run(t, SendConfig{
		Path: "x",
		Progress: func(done, total int64) {
			if err := r.network.SetFaults(sim.Faults{Drop: 1}); err != nil {
				t.Error(err)
			}
		},
	}, ReceiveConfig{}, t.Context(), t.Context())
	if !errors.Is(sendErr, ErrLost) || !errors.Is(receiveErr, ErrLost) {
		t.Errorf("sender %v, receiver %v", sendErr, receiveErr)
	}
	r.empty(t)
}
