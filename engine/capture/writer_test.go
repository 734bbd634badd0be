package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// TestReadBack writes frames of every padding, in one and in two pieces, and
// reads them with another implementation.
func TestReadBack(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, "xr0", 0)
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
	if err := w.Close(); err != nil {
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

// A gate is a reader that takes nothing until it is opened.
type gate struct {
	bytes.Buffer
	open    chan struct{}
	entered chan struct{} // gets a value when somebody is before it
}

func newGate() *gate {
	return &gate{open: make(chan struct{}), entered: make(chan struct{}, 1)}
}

func (g *gate) Write(b []byte) (int, error) {
	select {
	case g.entered <- struct{}{}:
	default:
	}
	<-g.open
	return g.Buffer.Write(b)
}

// TestSlowReader: what does not fit is dropped, counted and told, and the rest can be read.
func TestSlowReader(t *testing.T) {
	g := newGate()
	w := NewWriter(g, "xr0", 0)
	<-g.entered // with the header: from now on one buffer of the two is taken
	at := time.Unix(1_700_000_000, 0)
	data := make([]byte, 1500)
	for w.Dropped() < 10 {
		w.Frame(at, Inbound, data, nil)
	}
	kept := w.Frames()
	if most := uint64(minBuffer / 2 / len(data)); kept == 0 || kept > most {
		t.Errorf("%d frames wait, want 1 to %d", kept, most)
	}
	close(g.open)
	for w.Frames() == kept { // until there is room again
		w.Frame(at, Inbound, data, nil)
	}
	dropped := w.Dropped()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Frame(at, Inbound, data, nil) // is nothing
	if w.Frames() != kept+1 || w.Dropped() != dropped {
		t.Error("a frame was counted after Close")
	}
	tsharkSays(t, g.Bytes(), kept, dropped)
	r, err := pcapgo.NewNgReader(&g.Buffer, pcapgo.NgReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, _, err = r.ReadPacketData(); err == nil; _, _, err = r.ReadPacketData() {
		n++
	}
	iface, _ := r.Interface(0)
	if stats := iface.Statistics; !errors.Is(err, io.EOF) || n != kept+1 ||
		stats.PacketsDropped != dropped || stats.PacketsReceived != n+dropped ||
		!stats.LastUpdate.Equal(at) {
		t.Errorf("read %d frames of %d, statistics %+v, %v", n, kept+1, stats, err)
	}
}

// tsharkSays has Wireshark's programs read a capture in which the gap is before the last of
// so many frames and one, if they are there.
func tsharkSays(t *testing.T, file []byte, before, dropped uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gap.pcapng")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ program, want string }{
		{
			"tshark -T fields -e frame.number -e frame.drop_count -Y frame.drop_count -r",
			fmt.Sprintf("%d\t%d\n", before+1, dropped),
		},
		{"capinfos -c -M -r -T", fmt.Sprintf("%s\t%d\n", path, before+1)},
	} {
		args := append(strings.Fields(c.program), path)
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Log(args[0], "is not installed, so it was not asked")
			continue
		}
		out, err := exec.Command(args[0], args[1:]...).Output()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %q, want %q; %v", c.program, out, c.want, err)
		}
	}
}

// TestNobodyReads: Close ends with the goroutine when the reader of a pipe takes nothing.
func TestNobodyReads(t *testing.T) {
	r, file, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer file.Close()
	w := NewWriter(file, "xr0", 0)
	w.patience = time.Millisecond
	data := make([]byte, 1500)
	for w.Dropped() == 0 {
		w.Frame(time.Unix(1, 2), Inbound, data, nil)
	}
	for range 2 {
		if err := w.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("closed with %v", err)
		}
	}
	<-w.ended
}

// TestWriteWithoutEnd: Close does not wait for a Write that cannot be ended.
func TestWriteWithoutEnd(t *testing.T) {
	g := newGate()
	w := NewWriter(g, "xr0", 0)
	w.patience = time.Millisecond
	if err := w.Close(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("closed with %v", err)
	}
	close(g.open)
	w.patience = closeTimeout
	if err := w.Close(); err != nil {
		t.Error("closed when all was written:", err)
	}
	<-w.ended
}

type failingWriter struct{ left int }

func (f *failingWriter) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestDiskFull(t *testing.T) {
	w := NewWriter(&failingWriter{1000}, "xr0", 0)
	data := make([]byte, 1500)
	for range 2000 {
		w.Frame(time.Unix(0, 0), Inbound, data, nil)
	}
	if err := w.Close(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("full disk reported as %v", err)
	}
	if w.Frames()+w.Dropped() != 2000 {
		t.Errorf("%d frames added and %d dropped, of 2000", w.Frames(), w.Dropped())
	}
}

func TestFrameDoesNotAllocate(t *testing.T) {
	w := NewWriter(io.Discard, "xr0", 0)
	defer w.Close()
	data := make([]byte, 1499)
	at := time.Unix(1, 2)
	if n := testing.AllocsPerRun(100, func() { w.Frame(at, Outbound, data, nil) }); n != 0 {
		t.Errorf("%v allocations a frame", n)
	}
}

// A fullDisk takes so many bytes.
type fullDisk struct {
	bytes.Buffer
	room int
}

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room-d.Len())
	d.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errors.New("full")
	}
	return n, nil
}

// TestFullDisk: frames that were not written because the disk was full are missing, and counted so.
func TestFullDisk(t *testing.T) {
	for _, room := range []int{100, 5000, 60_000} {
		disk := &fullDisk{room: room}
		w := NewWriter(disk, "xr0", 0)
		for range 100 {
			w.Frame(time.Unix(1_700_000_000, 0), Inbound, make([]byte, 1000), nil)
		}
		if err := w.Close(); err == nil {
			t.Fatal("nothing is wrong")
		}
		n := CountPackets(disk.Bytes())
		if want := uint64(room / 1044); n > want || n+1 < want {
			t.Fatalf("%d packets in %d bytes", n, room)
		}
		if w.Frames() != n || w.Dropped() != 100-n {
			t.Errorf("%d bytes: %d frames and %d dropped; there are %d", room, w.Frames(),
				w.Dropped(), n)
		}
	}
}
