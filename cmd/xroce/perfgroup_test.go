package main

import (
	"strings"
	"testing"

	"xroce/engine/sim"
)

// TestPerfGroup: with -g datagrams go to a group, of which the receiver is a member, and come.
func TestPerfGroup(t *testing.T) {
	for _, c := range []struct {
		line string
		mac  [6]byte // of the group
	}{
		{"send-bw -s 1000 -g", [6]byte{0x01, 0x00, 0x5e, 0x7f, 0xb9, 0x0f}},
		{"send-bw -s 1000 -b -g -M 239.1.2.3", [6]byte{0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}},
		{
			"send-lat -g -M 255:21:0:0:0:0:0:0:0:0:0:0:1:2:3:4",
			[6]byte{0x33, 0x33, 1, 2, 3, 4},
		},
	} {
		t.Run(c.line, func(t *testing.T) {
			b, network := simBench(t)
			frames := 0
			network.Observe(func(e *sim.Event) {
				if e.Kind == sim.Sent && [6]byte(e.Frame) == c.mac {
					frames++
				}
			})
			words := strings.SplitN(c.line, " ", 2)
			server, client := perfPair(t, b, words[0], "-n 40 -c UD "+words[1], "")
			network.Observe(nil)
			for _, i := range []*invocation{client, server} {
				i.exited(t, exitOK)
			}
			contains(t, client.stdout, "QPN 0xffffff") // of the receiver, as the tool tells it
			if frames < 40 {
				t.Errorf("%d frames for the group", frames)
			}
		})
	}
	b, _ := simBench(t)
	server, client := perfPair(t, b, "send-bw", "-n 40 -c UD -s 100 -g", "-M 239.1.2.3")
	for _, i := range []*invocation{client, server} {
		i.exited(t, exitFailure)
		contains(t, i.stderr, "started differently", "-M 239.")
	}
	for line, want := range map[string]string{
		"send-bw -g":                     "-c UD",
		"send-bw -M 239.1.1.1":           "-M is for -g",
		"send-bw -c UD -g -q 2":          "each member of a group",
		"send-bw -c UD -g -M 1.2.3.4":    "1.2.3.4 is no group",
		"send-bw -c UD -g -M 1:2":        "neither an address nor",
		"send-bw -c UD -g -M ff15::1%lo": "neither an address nor",
		"write-bw -g":                    "only SENDs",
	} {
		i := b.run(t, append([]string{"perf"}, strings.Fields(line+" -d xr1")...)...)
		i.exited(t, exitUsage)
		contains(t, i.stderr, want)
	}
}
