package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/host"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// A devinfo is a device as ibv_devinfo describes it.
type devinfo struct {
	Name      string   `json:"hca_id"`
	Transport string   `json:"transport"`
	GUID      string   `json:"node_guid"`
	Driver    string   `json:"driver,omitempty"`
	NetdevMTU int      `json:"netdev_mtu"` // bytes
	Queues    int      `json:"queues"`     // receive queues that packets may come in on
	State     string   `json:"state"`
	MaxMTU    int      `json:"max_mtu"`    // bytes
	ActiveMTU int      `json:"active_mtu"` // bytes, 0 when the netdevice's MTU is too small
	LinkLayer string   `json:"link_layer"`
	GIDs      []gidRow `json:"gids"`
	// XDP and XDPMode are the XDP program that is attached, ours or not, and where it
	// runs: native is fast, generic works everywhere.
	XDP     uint32 `json:"xdp_program,omitempty"`
	XDPMode string `json:"xdp_mode,omitempty"`

	// Limits have the names of struct ibv_device_attr, flags as numbers.
	Limits map[string]uint64 `json:"limits"`

	stateCode   int
	max, active wire.MTU
	attr        engine.DeviceAttr
}

// A gidRow is an entry of the GID table.
type gidRow struct {
	Index  int    `json:"index"`
	GID    string `json:"gid"`
	Type   string `json:"type"`
	Netdev string `json:"netdev"`
	// VLAN is the ID of its tag, or of the inner one of two.
	VLAN uint16 `json:"vlan,omitempty"`
	// Tags are all tags, as wire.VLAN has them, where there is not just one of 802.1Q.
	Tags string `json:"vlan_tags,omitempty"`

	vlan wire.VLAN
}

// String is the entry in the words of ibv_devinfo, which does not know VLANs.
func (g gidRow) String() string {
	if g.vlan == 0 {
		return g.GID + ", " + g.Type
	}
	return fmt.Sprintf("%s, %s, VLAN %s (%s)", g.GID, g.Type, g.vlan, g.Netdev)
}

// Port states (enum ibv_port_state).
const (
	portDown   = 1
	portActive = 4
)

func newDevinfo(i host.Interface) devinfo {
	attr := engine.Attributes(engine.Options{})
	d := devinfo{
		Name: i.Name, Transport: "InfiniBand", GUID: guid(nodeGUID(i.MAC)), Driver: i.Driver,
		NetdevMTU: i.MTU, Queues: i.Queues, max: wire.MTU4096, active: i.ActiveMTU(),
		State: "PORT_DOWN", stateCode: portDown, LinkLayer: "Ethernet",
		Limits: limitValues(attr), attr: attr, XDP: i.XDP, XDPMode: i.XDPMode,
	}
	d.MaxMTU, d.ActiveMTU = d.max.Bytes(), d.active.Bytes()
	if i.Up && i.Carrier {
		d.State, d.stateCode = "PORT_ACTIVE", portActive
	}
	for _, e := range i.GIDTable() {
		row := gidRow{
			Index: e.Index, GID: e.GID.String(), Type: e.Type.String(), Netdev: e.Netdev,
			VLAN: uint16(e.VLAN & 0xfff), vlan: e.VLAN,
		}
		if e.VLAN > 0xfff {
			row.Tags = e.VLAN.String()
		}
		d.GIDs = append(d.GIDs, row)
	}
	return d
}

// guid prints a GUID as ibv_devinfo does.
func guid(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

func (a *app) devinfoCommand() *cobra.Command {
	var name string
	var port int
	var list bool
	c := &cobra.Command{
		Use:   "devinfo",
		Short: "Describe devices in the form of ibv_devinfo",
		Long: `Describe the devices in the form of ibv_devinfo, with numeric codes in parentheses.
With -v also limits, the driver and how many receive queues it has, and the GID
table. It needs no privileges.`,
		Example: `  xroce devinfo
  xroce devinfo -d eth0 -v
  xroce devinfo -l
  xroce devinfo --json`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVarP(&name, "device", "d", "", "only this device")
	flags.IntVarP(&port, "port", "i", 1, "port; every device has just port 1")
	flags.BoolVarP(&list, "list", "l", false, "only the names")
	return a.command(c, func(context.Context, []string) error {
		if port != 1 {
			return usagef("no port %d: every device has just port 1", port)
		}
		interfaces, err := a.machine.Interfaces()
		if err != nil {
			return err
		}
		devices := host.Devices(interfaces)
		if name != "" {
			d := host.Find(devices, name)
			if d == nil {
				return fmt.Errorf("no device %s: 'xroce devices' lists them", name)
			}
			devices = []host.Interface{*d}
		}
		infos := make([]devinfo, 0, len(devices))
		for _, d := range devices {
			infos = append(infos, newDevinfo(d))
		}
		switch {
		case a.json:
			return a.printJSON(infos)
		case list:
			a.printf("%d HCAs found:\n", len(infos))
			for _, d := range infos {
				a.printf("\t%s\n", d.Name)
			}
			return nil
		}
		for _, d := range infos {
			a.printf("%s\n", d.text(a.verbose > 0))
		}
		return nil
	})
}

// text prints the device in the layout of ibv_devinfo.
func (d *devinfo) text(verbose bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "hca_id:\t%s\n", d.Name)
	row := func(depth int, name, format string, args ...any) {
		// The original aligns by tabs: values start in column 40, or 48.
		column := 40
		if depth > 1 {
			column = 48
		}
		head := strings.Repeat("\t", depth) + name + ":"
		for at := 8*depth + len(name) + 1; at < column; at = at/8*8 + 8 {
			head += "\t"
		}
		b.WriteString(head + fmt.Sprintf(format, args...) + "\n")
	}
	row(1, "transport", "%s (0)", d.Transport)
	row(1, "fw_ver", "%s", version)
	row(1, "node_guid", "%s", d.GUID)
	row(1, "sys_image_guid", "%s", d.GUID)
	row(1, "vendor_id", "0x%06x", 0xffffff)
	row(1, "vendor_part_id", "%d", 0)
	row(1, "hw_ver", "0x%x", 0)
	row(1, "phys_port_cnt", "%d", 1)
	if verbose {
		for _, l := range limits {
			row(1, l.name, "%s", l.print(d.attr))
		}
	}
	b.WriteString("\t\tport:\t1\n")
	row(3, "state", "%s (%d)", d.State, d.stateCode)
	row(3, "max_mtu", "%s", mtuText(d.max))
	row(3, "active_mtu", "%s", mtuText(d.active))
	row(3, "sm_lid", "%d", 0)
	row(3, "port_lid", "%d", 0)
	row(3, "port_lmc", "0x%02x", 0)
	row(3, "link_layer", "%s", d.LinkLayer)
	if d.XDP != 0 {
		row(3, "xdp_program", "id %d, %s mode", d.XDP, d.XDPMode)
	}
	if verbose {
		row(3, "max_msg_sz", "0x%x", roce.MaxMessage)
		row(3, "netdev_mtu", "%d", d.NetdevMTU)
		row(3, "driver", "%s", or(d.Driver, "?"))
		row(3, "queues", "%d", d.Queues)
		row(3, "gid_tbl_len", "%d", engine.GIDTableLen)
		row(3, "pkey_tbl_len", "%d", 1)
		for _, g := range d.GIDs {
			row(3, fmt.Sprintf("GID[%3d]", g.Index), "%s", g)
		}
	}
	return b.String()
}

// mtuText prints an MTU with its code; 0 is none.
func mtuText(m wire.MTU) string {
	if m == 0 {
		return "invalid MTU (0)"
	}
	return fmt.Sprintf("%d (%d)", m.Bytes(), m)
}
