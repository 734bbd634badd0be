package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/engine"
)

// completedRoot is the tree of all commands, which says what a shell offers.
func completedRoot() *cobra.Command {
	a := newApp(nil, nil)
	a.machine = goodMachine()
	root := a.rootCommand()
	a.completions(root)
	return root
}

// eachFlag calls f for the flags of each command, with the command that has them.
func eachFlag(root *cobra.Command, f func(*cobra.Command, *pflag.Flag)) {
	eachCommand(root, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(flag *pflag.Flag) { f(c, flag) })
	})
}

// parsed runs a command line as far as its flags are looked at, and returns the exit code: nobody
// has time for what comes then, and there is no device.
func parsed(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	a := newApp(&out, &errs)
	a.machine, a.runtime, a.demoDir = goodMachine(), "", t.TempDir()
	a.open = func(string, engine.Options) (*engine.Device, error) {
		return nil, errors.New("no device")
	}
	return a.run(ctx, args), errs.String()
}

// completeLines are command lines that are right, of each command that has a flag whose values are
// offered.
var completeLines = map[string]string{
	"xroce":       "version",
	"copy":        "copy -d none0 a 192.0.2.9:",
	"demo":        "demo --sim --size 1",
	"fuzz":        "fuzz -d none0 192.0.2.9",
	"msg explain": "msg explain --size 100",
	"pingpong":    "pingpong 192.0.2.9",
	"pktgen":      "pktgen -d none0 --to 192.0.2.9",
	"rdma-client": "rdma-client -s 192.0.2.9",
	"rdma-server": "rdma-server",
	"rping":       "rping -c -a 192.0.2.9",
	"serve":       "serve --insecure --dir .",
	"sim":         "sim --seeds 1",
	"sink":        "sink -d none0",
	"tunnel":      "tunnel --tap none1 --peer 192.0.2.9",
	"ucmatose":    "ucmatose -s 192.0.2.9",
	"udaddy":      "udaddy -s 192.0.2.9",
}

// completeLine is a command line of a command that is right, "" if none is known.
func completeLine(path string) string {
	switch {
	case strings.HasPrefix(path, "msg ") && path != "msg explain":
		return path + " 192.0.2.9"
	case strings.HasPrefix(path, "perf atomic-bw"):
		return path + " --rate_limit 1 --rate_limit_type HW 192.0.2.9"
	case strings.HasPrefix(path, "perf ") && strings.HasSuffix(path, "-bw"):
		return path + " --rate_limit 10 192.0.2.9"
	case strings.HasPrefix(path, "perf "):
		return path + " 192.0.2.9"
	}
	return completeLines[path]
}

// TestCompletionOffersAreAccepted: each value that is offered for a flag is one that its command
// takes, on a line on which it refuses another one.
func TestCompletionOffersAreAccepted(t *testing.T) {
	t.Parallel()
	eachFlag(completedRoot(), func(c *cobra.Command, f *pflag.Flag) {
		complete, ok := c.GetFlagCompletionFunc(f.Name)
		if !ok || slices.Contains(deviceNames, f.Name) {
			return
		}
		values, _ := complete(c, nil, "")
		if len(values) == 0 {
			return
		}
		path := strings.TrimPrefix(c.CommandPath(), "xroce ")
		line := strings.Fields(completeLine(path))
		if len(line) == 0 {
			t.Errorf("%s has --%s, and no line here", path, f.Name)
			return
		}
		for _, v := range values {
			if code, said := parsed(t, append(line, "--"+f.Name+"="+v)...); code == exitUsage {
				t.Errorf("%s --%s %s is offered: %s", path, f.Name, v, said)
			}
		}
		if f.Name == "mtu" && (path == "msg explain" || path == "pktgen") {
			return // these take any number
		}
		if code, said := parsed(t, append(line, "--"+f.Name+"=7")...); code != exitUsage {
			t.Errorf("%s --%s 7: code %d, %s", path, f.Name, code, said)
		}
	})
}
