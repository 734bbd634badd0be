package main

import (
	"encoding/json"
	"path/filepath"
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
			args = "pktgen -d xr0 --json -n 200 --seed 3 --ack-timeout 1s --connect=" + port +
				" --to " + to
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

// TestRootPktgenReplay: the packets of a capture go over a real wire to another host, and arrive
// as what they are.
func TestRootPktgenReplay(t *testing.T) {
	t.Parallel() // it waits most of the time
	p, in := pair(t, vethpair.Options{})
	const file = "../../roce/wire/testdata/captures/rc_write_v4.pcap"
	to := p.B.IPv4.Addr().String()
	sink := in(vethpair.B).start(t, "sink", "-d", "xr0", "--json", "--keep")
	sink.awaitReady(t)
	kept := filepath.Join(t.TempDir(), "sent.pcapng")
	g := in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", to, "--replay", file, "--speed",
		"max", "--dest-qp", "0x77", "--json", "--capture", kept, "--metrics", "127.0.0.1:0",
		"--xsk-mode", "copy")
	var r pktgenReport
	if err := json.Unmarshal([]byte(g.stdout), &r); err != nil || g.code != exitOK {
		t.Fatalf("%v: code %d, %s", err, g.code, g.stderr)
	}
	if packets, n := readCapture(t, kept); uint64(len(packets)) != r.Sent || n.Dropped != 0 {
		t.Errorf("of %d packets that were sent the capture has %d, %+v", r.Sent, len(packets), n)
	}
	// A packet with a signature, behind those of the capture, says that they have come.
	var last *invocation
	patiently(func() bool { // as in meetSink
		last = in(vethpair.A).run(t, "pktgen", "-d", "xr0", "--to", to, "-n", "1", "--max-loss",
			"0")
		return last.code == exitOK
	})
	sink.cancel()
	sink.wait(t)
	var s sinkReport
	if err := json.Unmarshal([]byte(sink.stdout), &s); err != nil || last.code != exitOK {
		t.Fatalf("%v: code %d, %s", err, last.code, last.stderr)
	}
	if r.Sent == 0 || r.Sent != s.Unsigned || s.BadICRC != 0 || r.Replay.Read <= r.Sent {
		t.Errorf("%+v %+v\n%+v", r, r.Replay, s)
	}
	for _, args := range []string{
		"--replay x --rate 5", "--speed 2", "--replay x --speed 0", "--replay x --map-qp 1",
		"--replay x --from y", "--window 5", "--stateful --window 0",
	} {
		c := in(vethpair.A).run(t, append([]string{"pktgen", "-d", "xr0", "--to", to},
			strings.Fields(args)...)...)
		if c.code != exitUsage {
			t.Errorf("%s: code %d, %s", args, c.code, c.stderr)
		}
	}
}
