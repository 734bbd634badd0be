package cm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

const captureDir = "../wire/testdata/captures/"

// A datagram is a MAD and which way it went, seen from its sender.
type datagram struct {
	path cm.Path
	mad  []byte
}

// must ends a test.
func must(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only now: it costs more than most of what is checked
		t.Fatal(err)
	}
}

// capture returns the MADs of a capture file of two Soft-RoCE hosts.
func capture(t testing.TB, name string) (list []datagram) {
	t.Helper()
	file, err := os.ReadFile(captureDir + name + ".pcap")
	must(t, err)
	frames, err := roctest.Pcap(file)
	must(t, err)
	for i, frame := range frames {
		var p wire.Packet
		if r := p.Decode(frame, nil); r != wire.OK {
			t.Fatalf("%s, packet %d: %s", name, i, r)
		}
		if p.BTH.DestQP != 1 {
			continue
		}
		list = append(list, datagram{
			path: cm.Path{
				Local: p.Src, Remote: p.Dst, FlowLabel: p.FlowLabel, TClass: p.TClass,
				HopLimit: p.HopLimit,
			},
			mad: p.Payload,
		})
	}
	return list
}

// captureNames are the captures with a connection manager in them.
func captureNames(t testing.TB) (names []string) {
	t.Helper()
	for _, pattern := range []string{
		"cm_*.pcap", "app_rping*.pcap", "app_ucmatose*.pcap", "app_udaddy*.pcap",
	} {
		files, err := filepath.Glob(captureDir + pattern)
		must(t, err)
		if len(files) == 0 {
			t.Fatalf("no captures %s", pattern)
		}
		for _, file := range files {
			names = append(names, strings.TrimSuffix(filepath.Base(file), ".pcap"))
		}
	}
	return names
}
