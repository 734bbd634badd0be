package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine/capture/read"
)

// A captureInput is a file of packets that a command reads, or stdin.
type captureInput struct {
	name   string
	file   *os.File // nil of stdin
	reader *read.Reader
	count  int // packets that are read at most, 0 for all
	read   int // so far
}

// openCaptureInput opens a file, "-" for stdin. It reads the first count packets, all for 0.
func (a *app) openCaptureInput(name string, count int) (*captureInput, error) {
	return a.openCaptureWith(read.New, name, count)
}

// openCaptureAhead is openCaptureInput of all packets. A large file is read ahead by another
// processor, which takes less time by the clock and more of the processors.
func (a *app) openCaptureAhead(name string) (*captureInput, error) {
	return a.openCaptureWith(read.NewAhead, name, 0)
}

// openCaptureWith opens a file with a reader of large files, and smaller ones and what is no file
// with read.New.
func (a *app) openCaptureWith(
	large func(io.Reader) (*read.Reader, error), name string, count int,
) (*captureInput, error) {
	c := &captureInput{name: name, count: count}
	in := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, userfile.Failed(err)
		}
		c.file, in = file, file
	}
	open, err := read.New, error(nil)
	if c.file != nil && worthAhead(c.file) {
		open = large
	}
	if c.reader, err = open(in); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// aheadFrom is how long a file has to be, in bytes, to be worth a goroutine that reads it ahead.
const aheadFrom = 16 << 20

// worthAhead reports whether a file is one that can be read ahead, with profit.
func worthAhead(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() >= aheadFrom &&
		runtime.GOMAXPROCS(0) > 1
}

func (c *captureInput) close() {
	if c.reader != nil {
		c.reader.Close()
	}
	if c.file != nil {
		_ = c.file.Close() // it was read only
	}
}

// each calls take with each packet until the end, which is no error, or take fails. A file that is
// damaged is read to there.
func (c *captureInput) each(ctx context.Context, take func(p *read.Packet) error) error {
	var p read.Packet
	for c.count == 0 || c.read < c.count {
		// The context has a lock, which would cost as much as a packet.
		if c.read&0xff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.reader.Next(&p); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("%s: after %d packets: %w", c.name, c.read, err)
		}
		c.read++
		if err := take(&p); err != nil {
			return err
		}
	}
	return nil
}
