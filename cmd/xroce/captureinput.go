package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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

// openCaptureInput opens a file, "-" for stdin.
func (a *app) openCaptureInput(name string, count int) (*captureInput, error) {
	c := &captureInput{name: name, count: count}
	in := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		c.file, in = file, file
	}
	var err error
	if c.reader, err = read.New(in); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
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
