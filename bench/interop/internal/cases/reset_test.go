package cases

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestResets: every card is reset in every way, with xroce told to attach its program again, and to
// print its counters.
func TestResets(t *testing.T) {
	had := map[string][]Fault{}
	for _, c := range Plan() {
		if !c.Fault.Resets() {
			continue
		}
		if c.Card == "" {
			t.Errorf("%s is on no card", c.Name())
		}
		if !c.Self && !c.Generic && c.MTU == 1024 {
			had[c.Card] = append(had[c.Card], c.Fault)
		}
		our, their := ToolOf(c.Tool).Lines(c)
		for _, flag := range []string{"--reattach", "--json"} {
			if !slices.Contains(our, flag) || strings.Contains(their, flag) {
				t.Errorf("%s: %v, %s", c.Name(), our, their)
			}
		}
	}
	for card := range cards {
		if !slices.Equal(had[card], resetFaults) {
			t.Errorf("%s: %v", card, had[card])
		}
	}
}

// TestRefusals runs a script where no command is: each is refused, and said to be.
func TestRefusals(t *testing.T) {
	_, middle, _ := ResetScript(reset("igb", 1024, Rings))
	cmd := exec.Command("/bin/sh", "-c", strings.ReplaceAll(middle, "sleep", ":"))
	cmd.Env = []string{"PATH=/nowhere"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := Refusals("a line\n" + string(out))
	if len(got) != 2 || !strings.HasPrefix(got[0], "ethtool -G xr0 rx 128 tx 128: ") ||
		!strings.HasSuffix(got[1], "not found") {
		t.Errorf("%q", got)
	}
}

// TestResetFault: what xroce has not counted is a fault, and what a driver refuses that is not
// known to.
func TestResetFault(t *testing.T) {
	all := map[string]uint64{
		"mtu_changes": 2, "link_downed": 1, "xdp_detached": 1, "xdp_reattached": 1,
	}
	refused := []string{"ethtool: no"}
	for _, f := range resetFaults {
		c := reset("igb", 1024, f)
		if text := ResetFault(c, nil, all); text != "" {
			t.Errorf("%s: %s", f, text)
		}
		counted := f == Resized || f == Down || f == Detached
		if text := ResetFault(c, nil, nil); (text != "") != counted {
			t.Errorf("%s without counters: %q", f, text)
		}
		if text := ResetFault(c, refused, all); (text == "") != (f == Channels) {
			t.Errorf("%s refused: %q", f, text)
		}
	}
}
