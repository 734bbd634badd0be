package load

import (
	"errors"
	"fmt"
	"os"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/engine/capture"
)

// captureBuffer is how many bytes of packets wait for the file, as in xroce --capture.
const captureBuffer = 64 << 20

// A kept is a capture of a device to a file, which is removed at its end.
type kept struct {
	file   *os.File
	writer *capture.Writer
	stop   func()
}

// keep begins a capture as --capture of the xroce command does.
func keep(d *engine.Device, name string) (*kept, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	w := capture.New(file, capture.Config{Interface: d.Name(), Buffer: captureBuffer})
	return &kept{file, w, d.Watch(w)}, nil
}

// count adds what was captured.
func (k *kept) count(counts map[string]uint64) {
	counts[worker.Captured] = k.writer.Frames()
	counts[worker.CaptureMissing] = k.writer.Dropped()
}

// close ends the capture and removes it.
func (k *kept) close() error {
	k.stop()
	return errors.Join(k.writer.Close(), k.file.Close(), os.Remove(k.file.Name()))
}
