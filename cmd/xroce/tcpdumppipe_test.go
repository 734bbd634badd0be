package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// TestTcpdumpIntoTshark: the live pipe. tshark reads packets of a program that runs, with what
// came of them, and when it has enough and goes away xroce tcpdump ends, and the program does not.
func TestTcpdumpIntoTshark(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("tshark is not installed")
	}
	b, _ := simBench(t)
	b.runtime = filepath.Join(t.TempDir(), "xroce")
	long := []string{"perf", "send-lat", "-D", "1000", "-u", "22"}
	server := b.start(t, append(long, "-p", "0", "-d", "xr1")...)
	port := server.listenPort(t)
	server.awaitReady(t) // it listens before it has its device
	client := b.start(t, append(long, "-d", "xr2", "-p", port, "127.0.0.1")...)
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `"$0" tcpdump -i xr1 -w - "$1" 2>"$2" |
		tshark -l -i - -c 3 -T fields -e frame.comment -e infiniband.bth.opcode`,
		executable(), "outbound and opcode != ACK", filepath.Join(t.TempDir(), "says"))
	cmd.Env = append(os.Environ(), childUser+"=0", childRuntime+"="+b.runtime)
	cmd.WaitDelay = timeout.Scaled(10 * time.Second)
	out, err := cmd.Output() // it ends when both have
	says, _ := os.ReadFile(cmd.Args[len(cmd.Args)-1])
	if err != nil {
		t.Fatalf("%v: %s", err, says)
	}
	if strings.Count(string(out), " sent\t4\n") != 3 || // 4 is RC SEND only
		!strings.Contains(string(says), "watching xr1, of process ") {
		t.Errorf("%s%s", out, says)
	}
	for _, i := range []*invocation{server, client} {
		select {
		case <-i.done:
			t.Errorf("the program has ended: %s", i.stderr)
		default:
		}
		i.cancel()
	}
}
