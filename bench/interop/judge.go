package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// judge has tshark, a decoder that we did not write, read all packets that were
// kept: each must be InfiniBand to it, and none malformed. Two of its guessers are
// off. RPC over RDMA takes eight bytes of any SEND, and calls a shorter one
// malformed; Ethernet over InfiniBand takes random payload for a frame.
func (l *lab) judge(ctx context.Context) Outcome {
	start := time.Now()
	o := Outcome{Case: Case{Tool: "tshark", Role: "judge"}, Verdict: passed}
	fail := func(format string, args ...any) Outcome {
		o.Verdict, o.Reason = failed, fmt.Sprintf(format, args...)
		return o
	}
	if err := l.writer.Flush(); err != nil {
		return fail("capture: %v", err)
	}
	if l.writer.Frames() == 0 {
		o.Verdict, o.Reason = skipped, "no packets were kept"
		return o
	}
	cmd := exec.CommandContext(ctx, "tshark", "-r", filepath.Join(l.dir, captureName), "-n",
		"--disable-protocol", "rpcordma", "--disable-heuristic", "eth_over_ib",
		"-T", "fields", "-E", "separator= ",
		"-e", "frame.number", "-e", "frame.protocols", "-e", "_ws.malformed")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fail("tshark: %v: %s", err, lastLine(stderr.String()))
	}
	bad, n := l.malformed(string(out))
	o.Packets, o.Seconds = n, time.Since(start).Seconds()
	if uint64(n) != l.writer.Frames() {
		return fail("it read %d of %d packets", n, l.writer.Frames())
	}
	if len(bad) > 0 {
		return fail("%d of %d packets: %s", len(bad), n, strings.Join(bad[:min(len(bad), 5)], "; "))
	}
	return o
}

// malformed reads what tshark printed and returns how many packets that were and
// what it says of bad ones.
func (l *lab) malformed(text string) (bad []string, n int) {
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
		bad = append(bad, fmt.Sprintf("%q, of %s", lines.Text(), l.owner(number)))
	}
	return bad, n
}

// owner names the case that a packet of the capture is of.
func (l *lab) owner(packet uint64) string {
	name := "no case"
	for _, f := range l.firsts {
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
