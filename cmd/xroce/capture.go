package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"xroce/engine"
	"xroce/engine/capture"
)

// This file is about --capture, which commands have that open a device.

// captureBuffer is how many bytes of packets wait for a disk.
const captureBuffer = 64 << 20

// A keptCapture is a file to which the packets of a device go.
type keptCapture struct {
	file   *os.File
	writer *capture.Writer
	stop   func()
}

// capturePath is where the packets of the next device go: the file that was named, and for
// others than the first one beside it, as in all-eth1.pcapng for all.pcapng.
func (a *app) capturePath(iface string) string {
	if len(a.captures) == 0 {
		return a.captureFile
	}
	ext := filepath.Ext(a.captureFile)
	return strings.TrimSuffix(a.captureFile, ext) + "-" + iface + ext
}

// openCapture opens a device whose packets are kept.
func (a *app) openCapture(iface string, o engine.Options) (*engine.Device, error) {
	file, err := os.Create(a.capturePath(iface))
	if err != nil {
		return nil, fmt.Errorf("--capture: %w", err)
	}
	d, err := a.open(iface, o)
	if err != nil {
		file.Close()
		_ = os.Remove(file.Name()) // there is nothing in it
		return nil, err
	}
	w := capture.New(file, capture.Config{Interface: d.Name(), Buffer: captureBuffer})
	a.captures = append(a.captures, keptCapture{file, w, d.Watch(w)})
	return d, nil
}

// endCaptures writes the rest of what is kept, and returns why some of it is missing.
func (a *app) endCaptures() error {
	var first error
	for _, c := range a.captures {
		c.stop()
		err := c.writer.Close()
		if closed := c.file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("capture: %w", closed)
		}
		if err != nil && first == nil {
			first = err
		}
		if n := c.writer.Dropped(); n > 0 {
			a.logger.Warn("packets are missing in the capture, whose disk is slow or full",
				"file", c.file.Name(), "missing", n, "kept", c.writer.Frames())
		}
	}
	a.captures = nil
	return first
}
