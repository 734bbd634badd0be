package engine_test

import (
	"fmt"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce/mem"
)

// TestAttrMemoryWindows: windows, their type and their number go together.
func TestAttrMemoryWindows(t *testing.T) {
	dev := simWorld(t, 1, sim.Faults{}, engine.Options{}).devs[0]
	a := dev.Query()
	windows := a.Caps&engine.CapMemWindow != 0
	if windows != (a.MaxMW > 0) || windows != (a.Caps&engine.CapMWType2B != 0) {
		t.Errorf("flags %#x, max_mw %d", uint64(a.Caps), a.MaxMW)
	}
}

// TestAttrODP: what is told of on-demand paging is what RegODP does, and each
// transport has bits only where there is paging at all.
func TestAttrODP(t *testing.T) {
	dev := simWorld(t, 1, sim.Faults{}, engine.Options{}).devs[0]
	a := dev.Query()
	mr, err := dev.RegODP(dev.AllocPD(), make([]byte, 8), mem.LocalWrite)
	if told := a.ODP.General&1 != 0; told != (err == nil) {
		t.Errorf("general_odp_caps %#x, but RegODP says %v", a.ODP.General, err)
	}
	if err == nil {
		defer mr.Deregister()
	}
	if a.ODP != dev.ODPCaps() {
		t.Errorf("%+v, ODPCaps says %+v", a.ODP, dev.ODPCaps())
	}
	for name, bits := range map[string]engine.ODPOps{
		"RC": a.ODP.RC, "UC": a.ODP.UC, "UD": a.ODP.UD, "XRC": a.ODP.XRC,
	} {
		if bits != 0 && a.ODP.General&1 == 0 {
			t.Errorf("%s has %#x, but there is no on-demand paging", name, bits)
		}
	}
}

// TestQueryFollowsOptions: what options turn on or off shows.
func TestQueryFollowsOptions(t *testing.T) {
	t.Setenv(engine.ScatterToCQE, "0")
	for _, raw := range []bool{false, true} {
		dev := simWorld(t, 1, sim.Faults{}, engine.Options{RawPackets: raw}).devs[0]
		a := dev.Query()
		if (a.MaxRawEthQP > 0) != raw || a.MaxInlineRcv != 0 {
			t.Errorf("RawPackets %t: %d raw QPs, %d bytes", raw, a.MaxRawEthQP, a.MaxInlineRcv)
		}
		if fmt.Sprint(a) != fmt.Sprint(dev.Query()) {
			t.Error("another answer the second time")
		}
	}
}
