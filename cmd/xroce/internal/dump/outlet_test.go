package dump

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"xroce/engine/capture"
)

// A fullDisk takes so many bytes.
type fullDisk struct {
	bytes.Buffer
	room int
}

var errFull = errors.New("full")

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room-d.Len())
	d.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

// A burst is a script whose packets are there at once, so that many are written together.
type burst struct{ script }

func (b *burst) Buffered() bool { return b.n < b.packets }

// TestFullDisk: what is said to be written can be read, wherever the disk was full.
func TestFullDisk(t *testing.T) {
	sinks := map[string]func(w io.Writer) (Sink, error){
		"pcapng": func(w io.Writer) (Sink, error) { return NewWriter(w, "xr0", 0) },
		"lines":  func(w io.Writer) (Sink, error) { return NewLines(w, "xr0", false), nil },
		"json":   func(w io.Writer) (Sink, error) { return NewLines(w, "xr0", true), nil },
	}
	for name, make := range sinks {
		for _, room := range []int{120, 5000, 10 * 1 << 10} {
			for _, from := range []Source{&script{packets: 1000}, &burst{script{packets: 1000}}} {
				disk := &fullDisk{room: room}
				to, err := make(disk)
				if err != nil {
					t.Fatal(err)
				}
				taken, err := Run(from, to, 0)
				if err == nil || err.Error() != errFull.Error() {
					t.Errorf("%s, %d bytes: %v", name, room, err)
				}
				n := readable(t, name, disk.Bytes())
				if to.Written() != n || taken <= n {
					t.Errorf("%s, %d bytes, %T: %d packets taken and %d written; there are %d",
						name, room, from, taken, to.Written(), n)
				}
			}
		}
	}
}

// readable returns how many packets are whole.
func readable(t *testing.T, name string, b []byte) (n uint64) {
	t.Helper()
	if name != "pcapng" {
		return uint64(bytes.Count(b, []byte{'\n'}))
	}
	r, err := capture.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, err = r.Next(); err == nil; _, err = r.Next() {
		n++
	}
	return n
}

// TestAllWritten: at the end all that was taken is written, to whatever.
func TestAllWritten(t *testing.T) {
	for _, files := range []Files{{}, {Size: 2000}, {Size: 2000, Count: 2}} {
		files.Name = t.TempDir() + "/f"
		w, err := NewFiles(files, "xr0", 0)
		if err != nil {
			t.Fatal(err)
		}
		if taken, err := Run(&burst{script{packets: 10}}, w, 0); err != nil || taken != 10 ||
			w.Written() != 10 {
			t.Errorf("%+v: %d taken, %d written, %v", files, taken, w.Written(), err)
		}
	}
}
