package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine"
	"xroce/engine/capture"
	"xroce/xsk"
)

// This file is about --capture, which commands have that open a device.

const captureUsage = "keep the packets in this pcapng file"

// errCaptureOutput refuses to mix packets with what a command prints.
var errCaptureOutput = usagef("--capture needs a file: 'xroce tcpdump -w -' writes to the output")

// captureBuffer is how many bytes of packets wait for a disk.
const captureBuffer = 64 << 20

// A keptCapture is a file to which the packets of a device go.
type keptCapture struct {
	file   *userfile.Output
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

// openCapture opens a device whose packets are kept. The file has what it had until there is a
// device: with none, nothing comes that could replace it.
func (a *app) openCapture(iface string, o engine.Options) (*engine.Device, error) {
	file, err := userfile.Open(a.capturePath(iface))
	if err != nil {
		return nil, fmt.Errorf("--capture: %w", err)
	}
	d, err := a.open(iface, o)
	if err != nil {
		file.Abandon()
		return nil, err
	}
	if err := file.Begin(); err != nil {
		file.Abandon()
		return nil, errors.Join(fmt.Errorf("--capture: %w", err), d.Close())
	}
	w := capture.New(file, capture.Config{Interface: d.Name(), Buffer: captureBuffer})
	a.captures = append(a.captures, keptCapture{file, w, d.Watch(w)})
	return d, nil
}

// captureLinks has the frames of links kept, which are those of one interface, if that was asked
// for.
func (a *app) captureLinks(iface string, links []xsk.Link) error {
	if a.captureFile == "" {
		return nil
	}
	file, err := userfile.Open(a.capturePath(iface))
	if err != nil {
		return fmt.Errorf("--capture: %w", err)
	}
	if err := file.Begin(); err != nil {
		file.Abandon()
		return fmt.Errorf("--capture: %w", err)
	}
	w := capture.New(file, capture.Config{Interface: iface, Buffer: captureBuffer})
	a.captures = append(a.captures, keptCapture{file, w, func() {}})
	for i, link := range links {
		links[i] = traffic.NewTap(link, w)
	}
	return nil
}

// endCaptures writes the rest of what is kept, and returns why some of it is missing.
func (a *app) endCaptures() error {
	var first error
	for _, c := range a.captures {
		c.stop()
		err := userfile.Failed(c.writer.Close())
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
