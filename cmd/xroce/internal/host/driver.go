package host

import (
	"fmt"
	"strings"

	"xroce/engine/nic"
)

// A Driver is what is known of a driver of the kernel beforehand. docs/drivers.md says from
// where.
type Driver struct {
	Native      bool   // has native XDP
	ZeroCopy    string // first kernel with AF_XDP zero-copy, "" for none
	MultiBuffer bool   // takes frames of several buffers with XDP
	Restarts    bool   // restarts its queues when a program is attached or detached

	judge func(*nic.Card) []Finding
}

// Drivers are the drivers that something is known of.
var Drivers = map[string]Driver{
	"veth":       {Native: true, MultiBuffer: true},
	"virtio_net": {Native: true, ZeroCopy: "6.13", MultiBuffer: true, judge: judgeVirtio},
	"mlx5_core": {
		Native: true, ZeroCopy: "5.3", MultiBuffer: true, Restarts: true, judge: judgeMlx5,
	},
	"ice": {
		Native: true, ZeroCopy: "5.5", MultiBuffer: true, Restarts: true, judge: judgeRDMA,
	},
	"i40e": {
		Native: true, ZeroCopy: "4.20", MultiBuffer: true, Restarts: true, judge: judgeRDMA,
	},
	"ixgbe":   {Native: true, ZeroCopy: "4.20", Restarts: true, judge: judgeIxgbe},
	"igb":     {Native: true, ZeroCopy: "6.14", Restarts: true},
	"igc":     {Native: true, ZeroCopy: "5.14", Restarts: true},
	"ena":     {Native: true, Restarts: true, judge: judgeEna},
	"bnxt_en": {Native: true, MultiBuffer: true, Restarts: true, judge: judgeRDMA},
	"gve":     {Native: true, ZeroCopy: "6.4"},
	"mlx4_en": {Native: true, Restarts: true},
	"vmxnet3": {Native: true, Restarts: true},
	"hv_netvsc": {
		Native: true,
	},
	"e1000e": {}, "r8169": {}, "tg3": {}, "bridge": {}, "tun": {Native: true},
}

// judgeMlx5: with RoCE on in the driver the card takes packets to port 4791 for itself.
func judgeMlx5(c *nic.Card) []Finding {
	f := Finding{What: "RoCE of the card", Verdict: Good, Value: "off in the driver"}
	switch {
	case c.RDMA.RoCE == nic.SettingOff:
	case c.RDMA.RoCE == nic.SettingOn:
		f.Verdict = Missing
		f.Value = "on in the driver: the card takes RoCE packets before XDP sees them"
		f.Remedy = fmt.Sprintf("devlink dev param set pci/%s name enable_roce value false cmode "+
			"driverinit && devlink dev reload pci/%s", c.Bus, c.Bus)
	case len(c.RDMA.Devices) > 0:
		f.Verdict = Missing
		f.Value = strings.Join(c.RDMA.Devices, " ") + " is on the card, which takes RoCE " +
			"packets " +
			"before XDP sees them, and the driver has no devlink parameter enable_roce"
		f.Remedy = "modprobe -r mlx5_ib, if no other program needs RDMA"
	default:
		f.Value = "no RDMA driver is on the card"
	}
	return []Finding{f}
}

// rdmaModules are the RDMA drivers of cards whose Ethernet driver is another one.
var rdmaModules = map[string]string{"ice": "irdma", "i40e": "irdma", "bnxt_en": "bnxt_re"}

// judgeRDMA finds an RDMA driver on the card, which may take RoCE packets.
func judgeRDMA(c *nic.Card) []Finding {
	if len(c.RDMA.Devices) == 0 {
		return nil
	}
	return []Finding{{
		"RoCE of the card", Warning, strings.Join(c.RDMA.Devices, " ") +
			" is on the card: it may take RoCE packets before XDP sees them",
		"modprobe -r " + rdmaModules[c.Driver] + ", if no other program needs RDMA",
	}}
}

// judgeEna: the driver needs a second set of queues for XDP, and one page a frame.
func judgeEna(c *nic.Card) []Finding {
	f := Finding{What: "channels for XDP", Verdict: Good, Value: fmt.Sprintf(
		"%d of %d, at most half", c.Channels.Combined, c.Channels.MaxCombined)}
	if half := c.Channels.MaxCombined / 2; c.Channels.Combined > half {
		f.Verdict = Warning
		f.Value = fmt.Sprintf("%d of %d: native XDP needs half of them free", c.Channels.Combined,
			c.Channels.MaxCombined)
		f.Remedy = fmt.Sprintf("ethtool -L %s combined %d", c.Name, half)
		if half == 0 {
			f.Remedy = "take a larger instance: this one has a single channel; or --xdp-mode " +
				"generic"
		}
	}
	return []Finding{f}
}

// judgeIxgbe: the driver has no XDP beside virtual functions.
func judgeIxgbe(c *nic.Card) []Finding {
	if c.VFs == 0 {
		return nil
	}
	return []Finding{{
		"virtual functions", Warning, fmt.Sprintf("%d: the driver refuses native XDP with "+
			"any", c.VFs),
		fmt.Sprintf("echo 0 > /sys/class/net/%s/device/sriov_numvfs", c.Name),
	}}
}

// judgeVirtio: what the host merges, XDP must be able to turn off; and a queue for each CPU
// is to be spare.
func judgeVirtio(c *nic.Card) []Finding {
	var list []Finding
	if hw, ok := c.Feature("rx-gro-hw"); ok && hw.On && hw.Fixed {
		list = append(list, Finding{
			"merging by the host", Warning,
			"on, and the guest cannot turn it off: the driver refuses native XDP",
			"start the machine with guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off," +
				"guest_csum=off, or ctrl_guest_offloads=on",
		})
	}
	spare := c.Channels.MaxCombined - c.Channels.Combined
	f := Finding{What: "spare queues", Verdict: Good, Value: fmt.Sprintf(
		"%d for %d CPUs", spare, c.CPUs)}
	if spare < c.CPUs {
		f.Verdict = Note
		f.Value += ": XDP has none of its own to send with, and shares with a lock"
		f.Remedy = "if zero-copy is to be fast, give the machine more queues"
		if n := c.Channels.MaxCombined - c.CPUs; n > 0 {
			f.Remedy = fmt.Sprintf("ethtool -L %s combined %d", c.Name, n)
		}
	}
	return append(list, f)
}
