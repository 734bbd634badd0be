package nic

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"xroce/xsk/deepstack"
)

// Read asks the driver of an interface. It needs no privilege; what is refused, and what a
// driver does not have, is not told. The error is that of an interface which is not there.
func Read(iface string) (Card, error) {
	c := Card{Name: iface, Busy: BusyPoll{-1, -1}, CPUs: runtime.NumCPU()}
	ifi, err := net.InterfaceByName(iface)
	if err != nil {
		return c, fmt.Errorf("interface %s: %w", iface, err)
	}
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return c, fmt.Errorf("ethtool: %w", err)
	}
	defer tool.Close()
	deepstack.Deepen()
	if info, err := tool.DriverInfo(iface); err == nil {
		c.Driver, c.Version, c.Firmware = info.Driver, info.Version, info.FwVersion
		c.Bus = info.BusInfo
	}
	if n, err := tool.GetChannels(iface); err == nil {
		c.Channels = Channels{
			Rx: int(n.RxCount), Tx: int(n.TxCount), Combined: int(n.CombinedCount),
			MaxRx: int(n.MaxRx), MaxTx: int(n.MaxTx), MaxCombined: int(n.MaxCombined),
		}
	}
	if states, err := tool.FeaturesWithState(iface); err == nil {
		c.Features = make(map[string]Feature, len(states))
		for name, s := range states {
			c.Features[name] = Feature{On: s.Active, Fixed: !s.Available || s.NeverChanged}
		}
	}
	asked, err := openSocket(iface)
	if err != nil {
		return c, err
	}
	defer asked.close()
	t := table{iface, asked.call}
	c.Rings, c.Indirection = t.rings(), t.indirection()
	c.HashUDP4, c.HashUDP6 = t.hash(flowUDP4), t.hash(flowUDP6)
	if _, c.RuleRoom, _, c.RulesErr = t.size(); c.RulesErr == nil {
		c.Rules, c.RulesErr = t.rules()
	}
	if dir := sysfs(ifi); dir != "" {
		c.Busy.DeferHardIRQs = number(filepath.Join(dir, "napi_defer_hard_irqs"))
		c.Busy.FlushTimeout = number(filepath.Join(dir, "gro_flush_timeout"))
		c.IRQs = interrupts(filepath.Join(dir, "device", "msi_irqs"))
		if c.IRQs == nil {
			// A device of virtio is on a PCI device of another name, which has them. Join would
			// take the two steps for none, and the first is a link.
			c.IRQs = interrupts(dir + "/device/../msi_irqs")
		}
		c.RDMA.Devices = entries(filepath.Join(dir, "device", "infiniband"))
		c.RDMA.Soft = softDevices("/sys/class/infiniband", iface)
		c.VFs = max(0, number(filepath.Join(dir, "device", "sriov_numvfs")))
	}
	c.RDMA.RoCE = enableRoCE(c.Bus)
	return c, nil
}

// sysfs is the directory of the interface, "" when what is mounted there is another network
// namespace's, where somebody else may have the name.
func sysfs(ifi *net.Interface) string {
	dir := filepath.Join("/sys/class/net", ifi.Name)
	mac, err := os.ReadFile(filepath.Join(dir, "address"))
	if err != nil || number(filepath.Join(dir, "ifindex")) != ifi.Index ||
		strings.TrimSpace(string(mac)) != ifi.HardwareAddr.String() {
		return ""
	}
	return dir
}

// number reads a file with a number in it, -1 for none.
func number(file string) int {
	b, err := os.ReadFile(file)
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return -1
	}
	return n
}

// entries lists a directory, nothing when it is not there.
func entries(dir string) []string {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// softDevices lists the devices of Soft-RoCE on an interface: they have a file that names it.
func softDevices(dir, iface string) []string {
	var list []string
	for _, name := range entries(dir) {
		b, err := os.ReadFile(filepath.Join(dir, name, "parent"))
		if err == nil && strings.TrimSpace(string(b)) == iface {
			list = append(list, name)
		}
	}
	return list
}

// interrupts reads which interrupts a device has and where they go.
func interrupts(dir string) []IRQ {
	lines, _ := os.ReadFile("/proc/interrupts") // without it they have no names
	var list []IRQ
	for _, e := range entries(dir) {
		n, err := strconv.Atoi(e)
		if err != nil {
			continue
		}
		cpus, err := os.ReadFile(fmt.Sprintf("/proc/irq/%d/smp_affinity_list", n))
		if err != nil {
			continue // allocated, and nobody asked for it
		}
		list = append(list, IRQ{n, irqName(string(lines), n), strings.TrimSpace(string(cpus))})
	}
	slices.SortFunc(list, func(a, b IRQ) int { return a.Number - b.Number })
	return list
}

// irqName finds the name of an interrupt in /proc/interrupts.
func irqName(lines string, n int) string {
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) > 1 && f[0] == strconv.Itoa(n)+":" {
			return f[len(f)-1]
		}
	}
	return ""
}

// enableRoCE reads devlink's parameter of that name of a PCI device.
func enableRoCE(bus string) Setting {
	handle, err := netlink.NewHandle(unix.NETLINK_GENERIC)
	if err != nil {
		return NoSetting
	}
	defer handle.Close()
	p, err := handle.DevlinkGetDeviceParamByName("pci", bus, "enable_roce")
	if err != nil || p == nil || p.Type != nl.DEVLINK_PARAM_TYPE_BOOL {
		return NoSetting
	}
	for _, v := range p.Values {
		if on, ok := v.Data.(bool); ok && v.CMODE == nl.DEVLINK_PARAM_CMODE_DRIVERINIT {
			if on {
				return SettingOn
			}
			return SettingOff
		}
	}
	return NoSetting
}
