package play

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/dialogue"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/interop/internal/recordtest"
	"xroce/bench/softroce"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// TestAsRecorded has xroce talk to itself as two Soft-RoCE hosts did when they were
// recorded, and compares what either end says: the trace without a VM.
func TestAsRecorded(t *testing.T) {
	xsktest.NeedRoot(t)
	xroce, err := lab.Program(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	var sites [2]*softroce.Site
	for i, addr := range []string{"192.168.77.2/24", "192.168.77.3/24"} {
		site, err := softroce.NewSite(t.Context(), 1, cases.InterfaceMTU(4096),
			netip.MustParsePrefix(addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = site.Close() }) // the cable closes its tap
		sites[i] = site
	}
	cable := softroce.NewCable(sites[0].Port(), sites[1].Port())
	t.Cleanup(func() { _ = cable.Close() })
	for _, c := range []struct {
		record, tool   string
		server, client string
	}{
		{
			"app_rping_v4",
			"rping",
			"rping -s -a 192.168.77.3 -C 3 -S 500 -v", "rping -c -a 192.168.77.3 -C 3 -S 500 -V",
		},
		{
			"app_ucmatose_v4",
			"ucmatose",
			"ucmatose -b 192.168.77.3 -C 4 -S 1500 -v", "ucmatose -s 192.168.77.3 -C 4 -S 1500",
		},
		{
			"app_udaddy_v4",
			"udaddy",
			"udaddy -b 192.168.77.3 -C 3 -S 100 -v", "udaddy -s 192.168.77.3 -C 3 -S 100",
		},
	} {
		t.Run(c.record, func(t *testing.T) {
			d := dialogue.New()
			w := &watch{each: into(d)}
			cable.Watch(w.see)
			defer cable.Watch(nil)
			runBoth(t, xroce, sites, c.server, c.client)
			d.Rest(t.Context())
			reference := dialogue.New()
			for _, p := range recordtest.Read(t, c.record) {
				reference.Add(p.From, recordtest.Decode(t, p.Frame))
			}
			for _, who := range []softroce.End{softroce.A, softroce.B} {
				list := d.Compare(reference, who)
				if x := dialogue.Unexplained(c.tool, list); x != nil {
					t.Errorf("end %d: %+v", who, *x)
				}
			}
		})
	}
}

// runBoth runs a server and a client of ours to their end.
func runBoth(t *testing.T, xroce string, sites [2]*softroce.Site, server, client string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	run := func(s *softroce.Site, line string) *lab.Process {
		argv := append([]string{xroce}, strings.Fields(line)...)
		p, err := lab.Start(s.Command(ctx, append(argv, "-d", softroce.TapName)...))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b := run(sites[1], server)
	if !b.Await(ctx, func(s string) bool { return strings.Contains(s, "listening") }) {
		t.Fatalf("%s: %s", server, b.Output())
	}
	a := run(sites[0], client)
	if a.Wait() != 0 || b.Wait() != 0 {
		t.Fatalf("%s: %s\n%s: %s", server, b.Output(), client, a.Output())
	}
}
