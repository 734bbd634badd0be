package main

import (
	"encoding/binary"
	"strings"
	"testing"

	"xroce/engine/sim"
)

// TestPerfRaw: with -c RAW_PACKET messages are frames of an EtherType of its own, as long as was
// asked for, and come.
func TestPerfRaw(t *testing.T) {
	for line, length := range map[string]int{
		"send-bw -s 60":                   60,
		"send-bw":                         4214,
		"send-bw -b -s 1000 -l 4":         1000,
		"send-lat":                        64,
		"send-lat -s 300 -I 0 -e":         300,
		"send-bw -s 100 --rate_limit=0.1": 100,
	} {
		t.Run(line, func(t *testing.T) {
			b, network := simBench(t)
			frames := 0
			network.Observe(func(e *sim.Event) {
				if e.Kind == sim.Sent && binary.BigEndian.Uint16(e.Frame[12:]) == 0x88b5 {
					if frames++; len(e.Frame) != length || e.Frame[0] != 2 {
						t.Errorf("%d bytes to % x", len(e.Frame), e.Frame[:6])
					}
				}
			})
			words := strings.SplitN(line+" ", " ", 2)
			server, client := perfPair(t, b, words[0], "-n 40 -c RAW_PACKET "+words[1], "")
			network.Observe(nil)
			for _, i := range []*invocation{client, server} {
				i.exited(t, exitOK)
				contains(t, i.stdout, " Connection type : RAW_PACKET")
			}
			if frames < 40 {
				t.Errorf("%d frames", frames)
			}
		})
	}
	b, _ := simBench(t)
	for line, want := range map[string]string{
		"write-bw -c RAW_PACKET":                                    "for send tests",
		"send-bw -c RAW_PACKET -q 2":                                "one queue pair",
		"send-bw -c RAW_PACKET -a":                                  "neither -a",
		"send-bw -c RAW_PACKET --dump x":                            "there is no telling",
		"send-bw -c UD -g --dump x":                                 "there is no telling",
		"send-bw -c RawEth":                                         "UD and RAW_PACKET",
		"send-bw -c RAW_PACKET --rate_limit_type HW --rate_limit 1": "--rate_limit_type SW",
	} {
		i := b.run(t, append([]string{"perf"}, strings.Fields(line+" -d xr1")...)...)
		i.exited(t, exitUsage)
		contains(t, i.stderr, want)
	}
}
