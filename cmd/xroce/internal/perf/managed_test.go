package perf

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
)

// TestManagedSilence: where a host is but nobody who speaks rdma_cm, a client gives up.
func TestManagedSilence(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	client := device(t, network, 1, engine.Options{})
	defer client.Close()
	defer device(t, network, 2, engine.Options{}).Close()
	manager, err := cm.Open(client, cm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	cq, err := client.CreateCQ(2)
	if err != nil {
		t.Fatal(err)
	}
	m := &Managed{
		manager: manager, at: netip.MustParseAddrPort("192.0.2.2:18515"), dial: true,
		patience: time.Millisecond,
	}
	_, err = m.join(t.Context(), cm.Setup{PD: client.AllocPD(), Init: engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1,
	}})
	if !errors.Is(err, cm.ErrTimeout) || !strings.Contains(err.Error(), "does it run with -R") {
		t.Errorf("%v, want ErrTimeout and a question", err)
	}
}
