package main

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"xroce/bpf"
	"xroce/engine"
	"xroce/roce/wire"
	"xroce/xsk"

	"golang.org/x/sys/unix"
)

func TestDevinfoGolden(t *testing.T) {
	b := bench{machine: goodMachine()}
	for _, c := range []struct {
		file string
		args []string
	}{
		{"devices.golden", []string{"devices"}},
		{"devinfo.golden", []string{"devinfo"}},
		{"devinfo_verbose.golden", []string{"devinfo", "-d", "eth0", "-v"}},
		{"devinfo_list.golden", []string{"devinfo", "-l"}},
		{"devinfo_json.golden", []string{"devinfo", "-j"}},
		{"check.golden", []string{"check"}},
		{"check_device.golden", []string{"check", "eth0"}},
	} {
		i := b.run(t, c.args...)
		if i.code != exitOK || i.stderr != "" {
			t.Errorf("%v: code %d, stderr %q", c.args, i.code, i.stderr)
		}
		golden(t, c.file, i.stdout)
	}
}

func TestDevinfoUnknownDevice(t *testing.T) {
	i := bench{machine: goodMachine()}.run(t, "devinfo", "-d", "lo")
	if i.code != exitFailure {
		t.Errorf("code %d", i.code)
	}
	contains(t, i.stderr, "no device lo", "xroce devices")
}

// TestCheckFindsWhatIsMissing breaks the machine in one way at a time.
func TestCheckFindsWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fakeMachine)
		code   int
		want   []string
	}{
		{"old kernel", func(m *fakeMachine) { m.release = "5.17.9" }, 3, []string{"5.18"}},
		{
			"kernel without multi-buffer", func(m *fakeMachine) { m.release = "6.1.0-18" }, 0,
			[]string{"path MTU is at most 2048"},
		},
		{
			"no capability", func(m *fakeMachine) { m.user.Caps["CAP_NET_RAW"] = false }, 3,
			[]string{"no    CAP_NET_RAW", "chgrp GROUP ", "chmod 0750 ", "setcap"},
		},
		{
			"CAP_SYS_ADMIN for CAP_BPF", func(m *fakeMachine) { m.user.Caps["CAP_BPF"] = false }, 0,
			[]string{"-     CAP_BPF"},
		},
		{"little memory", func(m *fakeMachine) {
			m.user.Caps["CAP_IPC_LOCK"], m.user.LockedBytes = false, 8<<20
		}, 0, []string{"limit 8192 KiB", "ulimit -l unlimited"}},
		{"too little memory", func(m *fakeMachine) {
			m.user.Caps["CAP_IPC_LOCK"], m.user.LockedBytes = false, 64<<10
		}, 3, []string{"no    locked memory", "limit 64 KiB", "ulimit -l unlimited"}},
		{"small cgroup", func(m *fakeMachine) {
			m.user.ChargedBytes, m.user.Cgroup = 24<<20, "/small"
		}, 0, []string{"warn  memory cgroup", "/small has 24 MiB left", "memory.max"}},
		{
			"tiny cgroup", func(m *fakeMachine) { m.user.ChargedBytes = 7 << 20 }, 3,
			[]string{"no    memory cgroup"},
		},
		{"no BPF", func(m *fakeMachine) {
			m.bpf = bpf.Support{Cause: unix.EPERM, Missing: []string{"CAP_BPF"}}
		}, 3, []string{"load the XDP program", "give CAP_BPF"}},
		{"one CPU", func(m *fakeMachine) { m.user.CPUs = 1 }, 0, []string{"share one CPU"}},
		{
			"down", func(m *fakeMachine) { m.interfaces[1].Up = false }, 3,
			[]string{"ip link set eth0 up"},
		},
		{
			"small MTU", func(m *fakeMachine) { m.interfaces[1].MTU = 1500 }, 0,
			[]string{"path MTU 1024", "ip link set eth0 mtu 4200"},
		},
		{
			"tiny MTU", func(m *fakeMachine) { m.interfaces[1].MTU = 200 }, 3,
			[]string{"too small", "ip link set eth0 mtu 1500"},
		},
		{
			"many queues", func(m *fakeMachine) { m.interfaces[1].Queues = 8 }, 0,
			[]string{"8, all of which are ours", "yes   RoCE over IPv4", "on queues 0-7"},
		},
		{"veth without qdisc", func(m *fakeMachine) {
			m.interfaces[1].Driver, m.interfaces[1].Qdisc = "veth", "noqueue"
		}, 0, []string{"256 frames", "tc qdisc add dev eth0 root pfifo"}},
		{
			"foreign program", func(m *fakeMachine) {
				m.interfaces[1].XDP, m.interfaces[1].XDPMode = 77, "generic"
			}, 3,
			[]string{
				"id 77", "in generic mode", "bpftool prog show id 77", "bpftool link detach",
				"xdp off",
			},
		},
		{
			"no address", func(m *fakeMachine) { m.interfaces[1].Addrs = nil }, 0,
			[]string{"ip address add"},
		},
		{
			"taken queue", func(m *fakeMachine) { m.probeErr = unix.EBUSY }, 3,
			[]string{"ss --xdp"},
		},
		{"no zero-copy", func(m *fakeMachine) {
			m.support.ZeroCopy = xsk.Feature{Name: "zero-copy mode", Err: unix.EOPNOTSUPP}
		}, 0, []string{"no: operation not supported"}},
		{"no frames of two chunks", func(m *fakeMachine) {
			m.support.MultiBuffer = xsk.Feature{Name: "multi-buffer frames", Err: unix.EINVAL}
		}, 0, []string{"use a path MTU of 2048"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := goodMachine()
			c.change(m)
			i := bench{machine: m}.run(t, "check", "eth0")
			if i.code != c.code {
				t.Errorf("code %d, not %d", i.code, c.code)
			}
			contains(t, i.stdout, c.want...)
			i = bench{machine: m}.run(t, "check", "eth0", "--json")
			var r checkReport
			if err := json.Unmarshal([]byte(i.stdout), &r); err != nil {
				t.Fatal(err)
			}
			if r.Works != (c.code == 0) || i.code != c.code {
				t.Errorf("JSON says works %v, code %d", r.Works, i.code)
			}
		})
	}
}

func TestCheckUnknownInterface(t *testing.T) {
	i := bench{machine: goodMachine()}.run(t, "check", "eth9")
	if i.code != exitFailure {
		t.Errorf("code %d", i.code)
	}
	contains(t, i.stderr, "no interface eth9", "eth0, eth1")
}

func TestCheckRefusesLoopback(t *testing.T) {
	i := bench{machine: goodMachine()}.run(t, "check", "lo")
	if i.code != exitUnsupported {
		t.Errorf("code %d: %s", i.code, i.stdout)
	}
	contains(t, i.stdout, "no Ethernet")
}

func TestNodeGUID(t *testing.T) {
	// As rxe makes it of the same MAC address.
	mac := [6]byte{0x52, 0x54, 0, 0x77, 0xe1, 0x97}
	if got := guid(nodeGUID(mac)); got != "5054:00ff:fe77:e197" {
		t.Error(got)
	}
}

func TestChooseInterface(t *testing.T) {
	m := goodMachine()
	a := newApp(nil, nil)
	a.machine = m
	if got, err := a.chooseInterface("", netip.Addr{}); got != "eth0" || err != nil {
		t.Errorf("of one that is up: %q, %v", got, err)
	}
	m.interfaces[2].Up = true
	if got, err := a.chooseInterface("", netip.Addr{}); err == nil {
		t.Errorf("of two that are up: %q", got)
	} else {
		contains(t, err.Error(), "-d", "eth0, eth1")
	}
	if got, err := a.chooseInterface("xr7", netip.Addr{}); got != "xr7" || err != nil {
		t.Errorf("named: %q, %v", got, err)
	}
	m.interfaces = m.interfaces[:1]
	if got, err := a.chooseInterface("", netip.Addr{}); err == nil {
		t.Errorf("of none: %q", got)
	}
}

func TestDevinfoPortState(t *testing.T) {
	m := goodMachine()
	var got []string
	for _, i := range m.interfaces {
		got = append(got, newDevinfo(i).State)
	}
	if diff := cmp.Diff([]string{"PORT_DOWN", "PORT_ACTIVE", "PORT_DOWN"}, got); diff != "" {
		t.Error(diff)
	}
	small := m.interfaces[1]
	small.Port = engine.Port{Name: "x", MTU: 100}
	if d := newDevinfo(small); mtuText(d.active) != "invalid MTU (0)" || d.ActiveMTU != 0 {
		t.Errorf("MTU 100: %+v", d)
	}
}

// vlansOn are a VLAN on a port, and one on that of a service.
func vlansOn(mac [6]byte) []engine.VLAN {
	addr := netip.MustParseAddr
	both, _ := wire.VLAN(6).Behind(wire.NewVLAN(wire.TPIDService, 100))
	return []engine.VLAN{
		{ID: 5, Name: "eth0.5", Index: 4, MAC: mac, Addrs: []netip.Addr{addr("198.51.100.1")}},
		{
			ID: both, Name: "eth0.100.6", Index: 6, MAC: mac,
			Addrs: []netip.Addr{addr("198.51.100.65")},
		},
	}
}
