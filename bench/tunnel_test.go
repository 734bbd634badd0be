package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"xroce/bench/result"
)

// TestTunnelRun measures some tunnels for real, as shortly as can be: ours and, where the kernel
// has it, that of the kernel.
func TestTunnelRun(t *testing.T) {
	needMachine(t)
	b, err := newBench(t.Context(), flags{
		quick: true, pairs: 1, duration: 200 * time.Millisecond, peers: compiled(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	chosen := []string{
		tunRC, "ours, tap over ud, key", "ours, tap over native", vxlanXDP, lossyName,
	}
	for _, c := range tunnelCases() {
		c.variants = slices.DeleteFunc(c.variants, func(v variant) bool {
			return !slices.Contains(chosen, v.name)
		})
		got, err := b.measureCase(t.Context(), &c, newProgress(io.Discard, 1, time.Second))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, r := range got.Rows {
			ours := strings.HasPrefix(r.Variant, "ours")
			switch {
			case r.Void != "":
				continue // it gave up, and was tried again
			case ours != (len(r.Workers) == 4):
				t.Errorf("%s, %s: %d reports", c.name, r.Variant, len(r.Workers))
			case ours && r.Workers[2].Counters["tunnel_tx_datagrams"] == 0:
				t.Errorf("%s, %s: nothing went through: %+v", c.name, r.Variant, r.Workers)
			case strings.HasSuffix(c.name, "rtt") != (r.Workers[0].RTT != nil):
				t.Errorf("%s, %s: round trips %+v", c.name, r.Variant, r.Workers[0].RTT)
			}
		}
	}
}

// TestTunnelPeersAreNamed: what goals take for tunnels of others are variants.
func TestTunnelPeersAreNamed(t *testing.T) {
	var names []string
	for _, v := range tunnelVariants() {
		names = append(names, v.name)
	}
	for _, name := range result.UserTunnels {
		if !slices.Contains(names, name) {
			t.Errorf("%q is no variant", name)
		}
	}
}

// TestProgramMissing: what is not there is said with the package that has it.
func TestProgramMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for who, pkg := range map[backend]string{openVPN: "openvpn", tinc: "tinc", n2n: "n2n"} {
		if why := tunnelMissing(who); !strings.Contains(why, "apt-get install "+pkg) {
			t.Errorf("%s: %q", who, why)
		}
	}
}
