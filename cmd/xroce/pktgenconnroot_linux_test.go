package main

import (
	"encoding/json"
	"strings"
	"testing"

	"xroce/xsk/vethpair"
)

// TestRootPktgenConnect: a real peer answers the requests of a generator, recovers from what is
// wrong with them on purpose, and parts with its own result.
func TestRootPktgenConnect(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	to := p.B.IPv4.Addr().String()
	for test, flags := range map[string]string{
		"write-bw": "--opcodes RC_WRITE_FIRST,RC_WRITE_LAST --fault gap=40 --fault swap=50",
		"read-bw":  "--opcodes RC_READ_REQUEST,RC_READ_REQUEST --read-length 3000 --reads 2",
		"send-bw":  "--opcodes RC_SEND_ONLY --size 1082 --fault bad_icrc=30",
	} {
		t.Run(test, func(t *testing.T) {
			args := "perf " + test + " -d xr0 -p 0 -n 200 -s 1024"
			server := in(vethpair.B).start(t, strings.Fields(args)...)
			defer server.cancel()
			port := server.listenPort(t)
			args = "pktgen -d xr0 --json -n 200 --seed 3 --connect=" + port + " --to " + to
			c := in(vethpair.A).run(t, append(strings.Fields(args), strings.Fields(flags)...)...)
			var r pktgenReport
			if err := json.Unmarshal([]byte(c.stdout), &r); err != nil || c.code != exitOK {
				t.Fatalf("%v: code %d\n%s%s\n%s", err, c.code, c.stdout, c.stderr, server.stderr)
			}
			n := r.Connection
			lost := strings.Contains(flags, "fault")
			if n.New/2 != 100 || n.Answered != n.New || lost && (n.NAKs == 0 || n.Resent == 0) {
				t.Errorf("%+v", *n)
			}
			if server.wait(t); server.code != exitOK {
				t.Errorf("server: code %d\n%s%s", server.code, server.stdout, server.stderr)
			}
		})
	}
}
