package host_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/host"
	"xroce/engine"
	"xroce/engine/nic"
)

// on and off are the states of offloads.
var (
	on     = nic.Feature{On: true}
	fixed  = nic.Feature{On: true, Fixed: true}
	off    = nic.Feature{}
	noRule = unix.EOPNOTSUPP
)

// cards are descriptions of cards, at least one of each driver, and what is found on them. A
// finding is written as its verdict, its name, its value and its remedy.
var cards = []struct {
	name string
	card nic.Card
	vlan bool
	ours []int
	want []string
	not  []string
}{
	{
		"mlx5 with RoCE on", nic.Card{
			Driver: "mlx5_core", Bus: "0000:3b:00.0", Firmware: "16.35.2000", Version: "6.18.0",
			RDMA: nic.RDMA{RoCE: nic.SettingOn, Devices: []string{"mlx5_0"}},
		}, false, []int{0}, []string{
			"- driver mlx5_core, version 6.18.0, firmware 16.35.2000, at 0000:3b:00.0; it " +
				"restarts",
			"no RoCE of the card on in the driver: the card takes RoCE packets before XDP sees " +
				"them -> devlink dev param set pci/0000:3b:00.0 name enable_roce value false " +
				"cmode " +
				"driverinit && devlink dev reload pci/0000:3b:00.0",
		}, nil,
	},
	{
		"mlx5 of an old driver", nic.Card{
			Driver: "mlx5_core", RDMA: nic.RDMA{Devices: []string{"mlx5_1"}},
		}, false, []int{0}, []string{"no RoCE of the card mlx5_1 is", "modprobe -r mlx5_ib"}, nil,
	},
	{
		"mlx5 with RoCE off and LRO", nic.Card{
			Driver: "mlx5_core", RDMA: nic.RDMA{RoCE: nic.SettingOff},
			Features: map[string]nic.Feature{"rx-lro": on},
		}, false, []int{0}, []string{
			"yes RoCE of the card off in the driver", "warn LRO on", "-> ethtool -K eth0 lro off",
		}, nil,
	},
	{
		"ena with all channels", nic.Card{
			Driver: "ena", Channels: nic.Channels{Combined: 8, MaxCombined: 8}, RulesErr: noRule,
		}, false, []int{0}, []string{
			"warn channels for XDP 8 of 8: native XDP needs half of them free -> " +
				"ethtool -L eth0 combined 4",
			"warn RoCE over IPv4 on queues 0-7: 7 of 8 are not ours -> the driver has no flow " +
				"rules",
		}, nil,
	},
	{
		"ena with half", nic.Card{
			Driver: "ena", Channels: nic.Channels{Combined: 4, MaxCombined: 8}, RulesErr: noRule,
			HashUDP4: nic.HashSrcAddr | nic.HashDstAddr | nic.HashSrcPort | nic.HashDstPort,
		}, false, []int{0, 1, 2, 3}, []string{
			"yes queues 4, all of which are ours", "yes RoCE over IPv4 on queues 0-3",
			"yes channels for XDP 4 of 8", "yes hash of udp4", "- hash of udp6 not told",
		}, []string{"warn", "flow-type"},
	},
	{
		"ena with one", nic.Card{
			Driver: "ena", Channels: nic.Channels{Combined: 1, MaxCombined: 1},
		}, false, []int{0}, []string{"warn channels for XDP", "take a larger instance"}, nil,
	},
	{
		"ice with flow rules off", nic.Card{
			Driver: "ice", Channels: nic.Channels{Combined: 4, MaxCombined: 16}, RuleRoom: 1024,
			Features: map[string]nic.Feature{
				"rx-ntuple-filter": off, "rx-vlan-hw-parse": on, "rx-lro": off,
			}, RDMA: nic.RDMA{Devices: []string{"rocep1s0"}},
		}, true, []int{2}, []string{
			"warn queues 4, of which queue 2 is ours: RoCE packets may come in on one that is " +
				"not -> " +
				"--steer makes the rules below while a command runs; or have one queue: " +
				"ethtool -L " +
				"eth0 combined 1",
			"warn RoCE over IPv4 on queues 0-3: 3 of 4 are not ours -> ethtool -K eth0 ntuple " +
				"on && " +
				"ethtool -N eth0 flow-type udp4 dst-port 4791 action 2",
			"&& ethtool -N eth0 flow-type udp6 dst-port 4791 action 2",
			"&& ethtool -N eth0 flow-type ether proto 0x8915 action 2",
			"warn VLAN tags removed by the card", "-> ethtool -K eth0 rxvlan off",
			"warn RoCE of the card rocep1s0", "-> modprobe -r irdma", "yes LRO off",
		}, nil,
	},
	{
		"i40e with our rules", nic.Card{
			Driver: "i40e", Channels: nic.Channels{Combined: 4, MaxCombined: 16},
			Rules: []nic.Rule{
				{Location: 7, Kind: nic.V4, Queue: 1},
				{Location: 6, Kind: nic.V6, Queue: 1},
				{Location: 5, Kind: nic.V1, Queue: 3},
			}, Features: map[string]nic.Feature{"rx-vlan-hw-parse": fixed},
		}, false, []int{1}, []string{
			"yes RoCE over IPv4 on queue 1, by flow rule 7", "yes RoCE over IPv6 on queue 1",
			"warn RoCE v1 on queue 3, by flow rule 5 -> ethtool -N eth0 delete 5 && ethtool -N " +
				"eth0 flow-type ether proto 0x8915 action 1",
			"- VLAN tags", "use no VLANs",
		}, []string{"RoCE of the card"},
	},
	{
		"ixgbe with virtual functions",
		nic.Card{Driver: "ixgbe", VFs: 4},
		false,
		[]int{0},
		[]string{
			"warn virtual functions 4: the driver refuses native XDP with any -> echo 0 > " +
				"/sys/class/net/eth0/device/sriov_numvfs", "it restarts its queues",
		},
		nil,
	},
	{"ixgbe", nic.Card{Driver: "ixgbe"}, false, []int{0}, nil, []string{"virtual " +
		"functions", "warn"}},
	{
		"virtio_net whose host merges", nic.Card{
			Driver: "virtio_net", Channels: nic.Channels{Combined: 2, MaxCombined: 2}, CPUs: 2,
			Features: map[string]nic.Feature{"rx-gro-hw": fixed}, RulesErr: noRule,
		}, false, []int{0, 1}, []string{
			"warn merging by the host", "guest_tso4=off,guest_tso6=off", "- spare queues 0 for " +
				"2 CPUs",
			"give the machine more queues",
		}, []string{"rx-gro-hw off"},
	},
	{
		"virtio_net with spare queues", nic.Card{
			Driver: "virtio_net", Channels: nic.Channels{Combined: 4, MaxCombined: 6}, CPUs: 4,
			Features: map[string]nic.Feature{"rx-gro-hw": on}, RulesErr: noRule,
		}, false, []int{0, 1, 2, 3}, []string{
			"warn GRO in hardware", "ethtool -K eth0 rx-gro-hw off", "spare queues 2 for 4 CPUs",
			"ethtool -L eth0 combined 2",
		}, []string{"guest_tso4"},
	},
	{
		"bnxt_en with an RDMA driver", nic.Card{
			Driver: "bnxt_en", RDMA: nic.RDMA{Devices: []string{"bnxt_re0"}},
			Features: map[string]nic.Feature{"rx-gro-hw": on},
		}, false, []int{0}, []string{"warn GRO in hardware", "modprobe -r bnxt_re"}, nil,
	},
	{
		"veth with Soft-RoCE and GRO", nic.Card{
			Driver: "veth", Channels: nic.Channels{Rx: 4, Tx: 4, MaxRx: 4, MaxTx: 4},
			RDMA: nic.RDMA{Soft: []string{"rxe0", "rxe1"}}, RulesErr: noRule,
			Features: map[string]nic.Feature{"rx-udp-gro-forwarding": on},
		}, false, []int{0}, []string{
			"warn Soft-RoCE rxe0 rxe1", "rdma link delete rxe0 && rdma link delete rxe1",
			"ethtool -L eth0 rx 1 tx 1", "warn rx-udp-gro-forwarding",
			"ethtool -K eth0 rx-udp-gro-forwarding off",
			"warn RoCE v1 on a queue of the driver's choice: 3 of 4 are not ours ->",
		}, nil,
	},
	{
		"igb", nic.Card{
			Driver: "igb", Channels: nic.Channels{Combined: 4, MaxCombined: 4}, RuleRoom: 16,
			Indirection: []int{2, 3, 2, 3}, HashUDP4: nic.HashSrcAddr | nic.HashDstAddr,
			IRQs: []nic.IRQ{
				{Number: 30, Name: "eth0-TxRx-0", CPUs: "1"},
				{Number: 31, Name: "eth0-TxRx-1", CPUs: "1"},
			},
			Busy: nic.BusyPoll{DeferHardIRQs: 2, FlushTimeout: 200000},
		}, false, []int{2, 3}, []string{
			"yes RoCE over IPv4 on queues 2-3", "ethtool -N eth0 rx-flow-hash udp4 sdfn",
			"warn interrupts eth0-TxRx-0 on CPU 1, eth0-TxRx-1 on CPU 1 -> all are on CPU 1",
			"yes sysctls of busy polling napi_defer_hard_irqs 2",
		}, nil,
	},
	{
		"igc", nic.Card{
			Driver: "igc", Channels: nic.Channels{Combined: 4, MaxCombined: 4},
			Features: map[string]nic.Feature{"rx-ntuple-filter": on},
			IRQs:     []nic.IRQ{{Number: 30, CPUs: "0"}, {Number: 31, CPUs: "1"}},
		}, false, []int{0}, []string{
			"-> ethtool -N eth0 flow-type udp4 dst-port 4791 action 0", "- interrupts 30 on " +
				"CPU 0",
			"echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs; echo 200000 > " +
				"/sys/class/net/eth0/gro_flush_timeout",
		}, []string{"ntuple on"},
	},
	{"gve", nic.Card{Driver: "gve"}, false, []int{0}, nil, []string{"warn", "restarts"}},
	{
		"mlx4_en",
		nic.Card{Driver: "mlx4_en"},
		false,
		[]int{0},
		[]string{"it restarts its queues"},
		[]string{"warn"},
	},
	{"vmxnet3", nic.Card{Driver: "vmxnet3"}, false, []int{0}, []string{"restart"}, nil},
	{"hv_netvsc", nic.Card{Driver: "hv_netvsc"}, false, []int{0}, nil, []string{"warn"}},
	{"e1000e", nic.Card{Driver: "e1000e"}, false, []int{0}, nil, []string{"warn", "restarts"}},
	{"r8169", nic.Card{Driver: "r8169"}, false, []int{0}, nil, []string{"warn", "restarts"}},
	{"tg3", nic.Card{Driver: "tg3"}, false, []int{0}, nil, []string{"warn", "restarts"}},
	{"bridge", nic.Card{Driver: "bridge"}, false, []int{0}, nil, []string{"warn", "restarts"}},
	{"tun", nic.Card{Driver: "tun"}, false, []int{0}, nil, []string{"warn", "restarts"}},
	{
		"a driver that nobody knows",
		nic.Card{},
		false,
		[]int{0},
		[]string{"- driver unknown"},
		[]string{"warn"},
	},
}

// TestJudgeCard: what is found on each card, with the exact command for it.
func TestJudgeCard(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cards {
		c.card.Name = "eth0"
		seen[c.card.Driver] = true
		var i host.Interface
		if c.vlan {
			i.VLANs = []engine.VLAN{{ID: 5}}
		}
		var b strings.Builder
		for _, f := range host.JudgeCard(i, &c.card, c.ours) {
			b.WriteString(string(f.Verdict) + " " + f.What + " " + f.Value)
			if f.Remedy != "" {
				b.WriteString(" -> " + f.Remedy)
			}
			b.WriteByte('\n')
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in:\n%s", c.name, want, b.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("%s: %q is in:\n%s", c.name, not, b.String())
			}
		}
	}
	for name := range host.Drivers {
		if !seen[name] {
			t.Errorf("there is no card with driver %s", name)
		}
	}
}

// TestDriversDocumented: the table of docs/drivers.md has a row for each driver, and says the
// same of it.
func TestDriversDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../../docs/drivers.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		if cells := strings.Split(line, "|"); len(cells) > 6 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows[strings.Trim(cells[1], "`")] = cells
		}
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for name, d := range host.Drivers {
		want := []string{yes[d.Native], yes[false], yes[d.MultiBuffer], yes[d.Restarts]}
		if d.ZeroCopy != "" {
			want[1] = d.ZeroCopy
		}
		row := rows[name]
		if len(row) < 6 || strings.Join(row[2:6], " ") != strings.Join(want, " ") {
			t.Errorf("row of %s is %q, want %q", name, row, want)
		}
	}
}
