package capture

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// TestReadBack writes frames of every padding, in one and in two pieces, and
// reads them with another implementation.
func TestReadBack(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, "xr0")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_700_000_000, 123_456_789)
	var want [][]byte
	for n := range 70 {
		frame := make([]byte, n)
		for i := range frame {
			frame[i] = byte(n + i)
		}
		want = append(want, frame)
		w.Frame(start.Add(time.Duration(n)), Direction(1+n%2), frame[:n/2], frame[n/2:])
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if w.Frames() != 70 {
		t.Errorf("counts %d frames", w.Frames())
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	if err != nil {
		t.Fatal(err)
	}
	for n, frame := range want {
		data, info, err := r.ReadPacketData()
		if err != nil {
			t.Fatalf("frame %d: %v", n, err)
		}
		if !bytes.Equal(data, frame) || info.Length != n ||
			!info.Timestamp.Equal(start.Add(time.Duration(n))) {
			t.Fatalf("frame %d: read %x at %v, length %d", n, data, info.Timestamp, info.Length)
		}
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last frame: %v", err)
	}
	iface, err := r.Interface(0)
	if err != nil || iface.Name != "xr0" || iface.LinkType != layers.LinkTypeEthernet {
		t.Errorf("interface %+v, %v", iface, err)
	}
}

type failingWriter struct{ left int }

func (f *failingWriter) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestDiskFull(t *testing.T) {
	w, err := NewWriter(&failingWriter{bufferSize}, "xr0")
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 1500)
	for range 2000 {
		w.Frame(time.Unix(0, 0), Inbound, frame, nil)
	}
	if err := w.Flush(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("full disk reported as %v", err)
	}
}

func TestFrameDoesNotAllocate(t *testing.T) {
	w, err := NewWriter(io.Discard, "xr0")
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 1499)
	at := time.Unix(1, 2)
	if n := testing.AllocsPerRun(100, func() { w.Frame(at, Outbound, frame, nil) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}
