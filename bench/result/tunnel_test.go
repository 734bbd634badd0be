package result

import (
	"slices"
	"strings"
	"testing"
)

// tunnelRun is a run of tunnels: each variant has the same value in all rounds.
func tunnelRun(name string, lower bool, values map[string]float64) *Document {
	c := Case{Name: name, LowerIsBetter: lower, Reference: vxlanXDP, Control: vxlanXDP}
	for v, x := range values {
		c.Variants = append(c.Variants, v)
		for round := range 3 {
			c.Rows = append(c.Rows, Row{Round: round, Variant: v, Value: x})
		}
	}
	slices.Sort(c.Variants)
	return &Document{Cases: []Case{c}}
}

// TestEncryptedGoal: what is encrypted is held against the best one in user space, whichever that
// is, and against none when none is there.
func TestEncryptedGoal(t *testing.T) {
	const goal, sealed = "TCP in a tap over rc with a key, of the best in user space",
		"ours, tap over rc, key"
	values := map[string]float64{sealed: 300, "OpenVPN": 200, "tinc": 400, vxlanXDP: 9000}
	v := verdict(t, tunnelRun(tunnelTCP, false, values), goal)
	if v.Measured.Median != 0.75 || v.Met() {
		t.Errorf("%+v, want the ratio to tinc, which is not met", v.Measured)
	}
	values["tinc"] = 250
	if v := verdict(t, tunnelRun(tunnelTCP, false, values), goal); !v.Met() {
		t.Errorf("%+v, want it met", v.Measured)
	}
	delete(values, "tinc")
	delete(values, "OpenVPN")
	v = verdict(t, tunnelRun(tunnelTCP, false, values), goal)
	if v.String() != "not measured" {
		t.Errorf("without a peer: %s", v)
	}
}

// TestTunnelTable: one row a variant, also of those that a case does not have.
func TestTunnelTable(t *testing.T) {
	d := tunnelRun(tunnelRTT, true, map[string]float64{tapUD: 26000, vxlanXDP: 20000})
	d.Cases = append(d.Cases, tunnelRun(tunnelTCP, false, map[string]float64{
		vxlanXDP: 2e9, tunRC: 3e9, tapUD: 1e9,
	}).Cases...)
	var out strings.Builder
	table := d.tunnelTable()
	if err := table.writeMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| VXLAN, XDP | 2000 | – | – | – | 20.0 | – |",
		"| ours, tap over ud | 1000 | 0.50 | – | – | 26.0 | 1.30 |",
		"| ours, tun over rc | 3000 | 1.50 | – | – | – | – |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if v := verdict(t, d, "half round trip in a tap over ud, of VXLAN with XDP"); !v.Met() {
		t.Errorf("1.3 of 1.3 is %s", v)
	}
}
