package main

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xroce/bench/softroce"
	"xroce/xsk/xsktest"
)

// TestAsRecorded has xroce talk to itself as two Soft-RoCE hosts did when they were
// recorded, and compares what either end says: the trace without a VM.
func TestAsRecorded(t *testing.T) {
	xsktest.NeedRoot(t)
	l := &lab{dir: t.TempDir()}
	if err := l.program(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	var sites [2]*softroce.Site
	for i, addr := range []string{"192.168.77.2/24", "192.168.77.3/24"} {
		site, err := softroce.NewSite(t.Context(), interfaceMTU(4096), netip.MustParsePrefix(addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = site.Close() }) // the cable closes its tap
		sites[i] = site
	}
	cable := softroce.NewCable(sites[0].Port(), sites[1].Port())
	t.Cleanup(func() { _ = cable.Close() })
	for _, c := range []struct {
		record string
		Case
		server, client string
	}{
		{
			"app_rping_v4",
			Case{Tool: "rping"},
			"rping -s -a 192.168.77.3 -C 3 -S 500 -v", "rping -c -a 192.168.77.3 -C 3 -S 500 -V",
		},
		{
			"app_ucmatose_v4",
			Case{Tool: "ucmatose"},
			"ucmatose -b 192.168.77.3 -C 4 -S 1500 -v", "ucmatose -s 192.168.77.3 -C 4 -S 1500",
		},
		{
			"app_udaddy_v4",
			Case{Tool: "udaddy"},
			"udaddy -b 192.168.77.3 -C 3 -S 100 -v", "udaddy -s 192.168.77.3 -C 3 -S 100",
		},
	} {
		t.Run(c.record, func(t *testing.T) {
			d := newDialogue()
			w := &watch{each: d.watch}
			cable.Watch(w.see)
			defer cable.Watch(nil)
			runBoth(t, l, sites, c.server, c.client)
			d.rest(t.Context())
			reference := overheard(t, recorded(t, c.record), -1, nil)
			for _, who := range []softroce.End{softroce.A, softroce.B} {
				list := d.compare(reference, who)
				if x := unexplained(c.Case, list); x != nil {
					t.Errorf("end %d: %+v", who, *x)
				}
			}
		})
	}
}

// runBoth runs a server and a client of ours to their end.
func runBoth(t *testing.T, l *lab, sites [2]*softroce.Site, server, client string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := func(s *softroce.Site, line string) *process {
		argv := append([]string{filepath.Join(l.dir, "xroce")}, strings.Fields(line)...)
		p, err := start(s.Command(ctx, append(argv, "-d", softroce.TapName)...))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b := run(sites[1], server)
	if !b.await(ctx, func(s string) bool { return strings.Contains(s, "listening") }) {
		t.Fatalf("%s: %s", server, b.output())
	}
	a := run(sites[0], client)
	if a.wait() != 0 || b.wait() != 0 {
		t.Fatalf("%s: %s\n%s: %s", server, b.output(), client, a.output())
	}
}
