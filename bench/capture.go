package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"xroce/bench/load"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// ramDiskRoom is how many bytes a RAM disk has to have room for: the packets of both ends.
const ramDiskRoom = 2 << 30

// A ramDisk is a directory on a file system in memory, made when it is first asked for.
type ramDisk struct {
	once         sync.Once
	dir, missing string
}

// open returns the directory, or why there is none.
func (d *ramDisk) open() (dir, missing string) {
	d.once.Do(func() {
		d.missing = "needs a tmpfs with 2 GiB of room in /dev/shm"
		var fs unix.Statfs_t
		if unix.Statfs("/dev/shm", &fs) != nil || fs.Type != unix.TMPFS_MAGIC ||
			fs.Bavail*uint64(fs.Bsize) < ramDiskRoom {
			return
		}
		var err error
		if d.dir, err = os.MkdirTemp("/dev/shm", "xroce-bench-"); err == nil {
			d.missing = ""
		}
	})
	return d.dir, d.missing
}

// remove removes the directory, if it was made.
func (d *ramDisk) remove() {
	if d.dir != "" {
		_ = os.RemoveAll(d.dir)
	}
}

// captureCases measure what --capture costs a stream of short SENDs, at each end.
func captureCases() []benchCase {
	c := benchCase{
		name:      result.CaptureCase,
		title:     fmt.Sprintf("SEND of %d bytes with packets captured to a RAM disk", shortLength),
		unit:      "messages/s",
		full:      true,
		control:   result.NotCaptured,
		reference: result.NotCaptured,
		stage:     stage.Options{MTU: 1500, Threaded: true},
		sockets:   shortSockets(load.RCOverhead),
	}
	for _, v := range []struct {
		name string
		at   []stage.Side
	}{
		{result.NotCaptured, nil},
		{result.CapturedSending, []stage.Side{stage.A}},
		{result.CapturedReceiving, []stage.Side{stage.B}},
		{result.CapturedBoth, []stage.Side{stage.A, stage.B}},
	} {
		c.variants = append(c.variants, variant{
			name: v.name, needs: []backend{rc, ram},
			run: captured(messages(rc, "send", "recv"), v.at),
		})
	}
	return []benchCase{c}
}

// captured is a run whose packets are captured at some ends, all of them: else it does not count.
func captured(run runFunc, at []stage.Side) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		dir, _ := p.ram.open()
		m, err := run.with(func(side stage.Side, o *worker.Options) {
			if slices.Contains(at, side) {
				o.Capture = filepath.Join(dir, fmt.Sprintf("%d.pcapng", side))
			}
		})(ctx, p)
		if err == nil {
			err = wholeCaptures(m.workers, len(at))
		}
		return m, err
	}
}

// wholeCaptures is an error if packets are missing in the captures of so many ends: a capture that
// leaves some out is not what is measured.
func wholeCaptures(workers []worker.Report, ends int) error {
	captures := 0
	for i := range workers {
		n, ok := workers[i].Counters[worker.Captured]
		if !ok {
			continue
		}
		captures++
		if missing := workers[i].Counters[worker.CaptureMissing]; missing > 0 || n == 0 {
			return fmt.Errorf("bench: %d packets were captured, and %d are missing", n, missing)
		}
	}
	if captures != ends {
		return fmt.Errorf("bench: %d of %d ends captured packets", captures, ends)
	}
	return nil
}
