package roster

import (
	"slices"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
)

// open opens a device on an interface of a simulated network of its own.
func open(t *testing.T, iface string) *engine.Device {
	t.Helper()
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	port, err := network.NewPort(sim.PortConfig{Name: iface, MAC: [6]byte{2}, MTU: 4200})
	if err != nil {
		t.Fatal(err)
	}
	d, err := engine.OpenLink(port, port, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestNames: no two devices have one name, none changes it while others come and go, and a name
// that is free is given again.
func TestNames(t *testing.T) {
	var r Roster
	var devices []*engine.Device
	add := func(iface string) {
		devices = append(devices, open(t, iface))
		r.Add(devices[len(devices)-1])
	}
	is := func(want ...string) {
		t.Helper()
		var names []string
		for _, d := range r.Open() {
			names = append(names, d.Name())
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
	}
	for _, iface := range []string{"eth0", "eth0#2", "eth0", "eth1", "eth0"} {
		add(iface)
	}
	is("eth0", "eth0#2", "eth0#3", "eth1", "eth0#4")
	for _, i := range []int{2, 0} {
		if err := devices[i].Close(); err != nil {
			t.Fatal(err)
		}
	}
	is("eth0#2", "eth1", "eth0#4")
	add("eth0")
	add("eth0")
	is("eth0#2", "eth1", "eth0#4", "eth0", "eth0#3")
}
