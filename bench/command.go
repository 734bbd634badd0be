package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"xroce/bench/load"
	"xroce/bench/worker"
)

// What people run: the xroce command itself, and the programs of others that it is like.

// commandPackage is the package of our command.
const commandPackage = "xroce/cmd/xroce"

// buildCommand builds our command into a directory, from the source that the bench is run in. It
// returns what went wrong, in one line.
func buildCommand(ctx context.Context, dir string) (path, missing string) {
	path = filepath.Join(dir, "xroce")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, commandPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return path, ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return "", fmt.Sprintf("needs our command: go build: %v: %s", err, line)
}

// A largeCapture is a file of packets to read.
type largeCapture struct {
	path    string
	bytes   int64
	packets uint64
}

// captureBytes is how long the file is; in a quick run a tenth of that.
const captureBytes = 200 << 20

// writeCapture writes the file into a directory.
func writeCapture(dir string, bytes int64) (c largeCapture, err error) {
	c.path = filepath.Join(dir, "large.pcap")
	file, err := os.Create(c.path)
	if err != nil {
		return c, fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriterSize(file, 1<<20)
	if c.packets, err = load.WriteTrace(out, bytes); err != nil {
		return c, err
	}
	if err := out.Flush(); err != nil {
		return c, fmt.Errorf("bench: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return c, fmt.Errorf("bench: %w", err)
	}
	c.bytes = info.Size()
	return c, nil
}

// reads measures a program that reads the large capture to its end, in bytes a second, on any
// processor. What it prints goes to /dev/null.
func reads(argv func(p *place) []string) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		file, err := p.largeCapture()
		if err != nil {
			return measurement{}, err
		}
		args := append(argv(p), file.path)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		begin := time.Now()
		if err := cmd.Run(); err != nil {
			return measurement{}, fmt.Errorf("%s: %w: %s", args[0], err, stderr.Bytes())
		}
		seconds := time.Since(begin).Seconds()
		return measurement{
			value: float64(file.bytes) / seconds,
			workers: []worker.Report{{
				Packets: file.packets, Total: file.packets, Bytes: uint64(file.bytes),
				Seconds: seconds, Mode: filepath.Base(args[0]),
				Cost: &worker.Cost{
					UserTime:   cmd.ProcessState.UserTime().Nanoseconds(),
					SystemTime: cmd.ProcessState.SystemTime().Nanoseconds(),
				},
			}},
		}, nil
	}
}

// ourCommand is our command with a word and more arguments.
func ourCommand(args ...string) func(p *place) []string {
	return func(p *place) []string {
		path, _ := p.command()
		return append([]string{path}, args...)
	}
}

// othersCommand is a program of others.
func othersCommand(argv ...string) func(*place) []string {
	return func(*place) []string { return argv[:len(argv):len(argv)] }
}
