package lab

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/softroce"
	"xroce/engine/capture"
)

// captureName is the name of the file.
const captureName = "interop.pcapng"

// A Capture is what is kept of the packets of a run, and of which case they are.
type Capture struct {
	file   *os.File
	writer *capture.Writer
	firsts []first
}

// first says with which packet of the capture a case begins, from 1 on.
type first struct {
	packet uint64
	name   string
}

// newCapture begins one in a directory.
func newCapture(dir string) (c *Capture, err error) {
	c = &Capture{}
	if c.file, err = os.Create(filepath.Join(dir, captureName)); err != nil {
		return nil, err
	}
	c.writer = capture.NewWriter(c.file, softroce.TapName, capture.DefaultBuffer)
	return c, nil
}

// Begin notes that the packets from now on are those of a case, and returns what takes
// them.
func (c *Capture) Begin(name string) *capture.Writer {
	c.firsts = append(c.firsts, first{packet: c.writer.Frames() + 1, name: name})
	return c.writer
}

// copyTo copies what was written so far to a directory.
func (c *Capture) copyTo(dir string) error {
	data, err := os.ReadFile(c.file.Name())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, captureName), data, 0o644)
}

func (c *Capture) close() error { return errors.Join(c.writer.Close(), c.file.Close()) }

// Judge has tshark, a decoder that we did not write, read all packets that were
// kept: each must be InfiniBand to it, and none malformed. Two of its guessers are
// off. RPC over RDMA takes eight bytes of any SEND, and calls a shorter one
// malformed; Ethernet over InfiniBand takes random payload for a frame.
func (c *Capture) Judge(ctx context.Context) cases.Outcome {
	start := time.Now()
	o := cases.Outcome{Case: cases.Case{Tool: "tshark", Role: "judge"}, Verdict: cases.Passed}
	fail := func(format string, args ...any) cases.Outcome {
		o.Verdict, o.Reason = cases.Failed, fmt.Sprintf(format, args...)
		return o
	}
	if err := c.writer.Close(); err != nil {
		return fail("%v", err)
	}
	if n := c.writer.Dropped(); n > 0 {
		return fail("%d packets are missing in the capture: the disk is too slow", n)
	}
	if c.writer.Frames() == 0 {
		o.Verdict, o.Reason = cases.Skipped, "no packets were kept"
		return o
	}
	cmd := exec.CommandContext(ctx, "tshark", "-r", c.file.Name(), "-n",
		"--disable-protocol", "rpcordma", "--disable-heuristic", "eth_over_ib",
		"-T", "fields", "-E", "separator= ",
		"-e", "frame.number", "-e", "frame.protocols", "-e", "_ws.malformed")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fail("tshark: %v: %s", err, lastLine(stderr.String()))
	}
	bad, n := c.malformed(string(out))
	o.Packets, o.Seconds = n, time.Since(start).Seconds()
	if uint64(n) != c.writer.Frames() {
		return fail("it read %d of %d packets", n, c.writer.Frames())
	}
	if len(bad) > 0 {
		return fail("%d of %d packets: %s", len(bad), n, strings.Join(bad[:min(len(bad), 5)], "; "))
	}
	return o
}

// malformed reads what tshark printed and returns how many packets that were and
// what it says of bad ones.
func (c *Capture) malformed(text string) (bad []string, n int) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		n++
		fields := strings.Fields(lines.Text())
		if len(fields) == 2 && strings.Contains(":"+fields[1]+":", ":infiniband:") &&
			!strings.Contains(fields[1], "malformed") {
			continue
		}
		number, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			number = uint64(n)
		}
		bad = append(bad, fmt.Sprintf("%q, of %s", lines.Text(), c.owner(number)))
	}
	return bad, n
}

// owner names the case that a packet of the capture is of.
func (c *Capture) owner(packet uint64) string {
	name := "no case"
	for _, f := range c.firsts {
		if f.packet > packet {
			break
		}
		name = f.name
	}
	return name
}

// lastLine is where programs say what failed.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
