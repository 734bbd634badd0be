package host

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"xroce/bpf"
	"xroce/engine"
	"xroce/engine/nic"
	"xroce/xsk"
	"xroce/xsk/deepstack"
)

// Local is the machine that the program runs on, seen from the network
// namespace of the calling thread.
type Local struct{}

var _ Machine = Local{}

// Kernel returns the release, as uname -r does.
func (Local) Kernel() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", fmt.Errorf("uname: %w", err)
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

// BPF implements Machine.
func (Local) BPF() (bpf.Support, error) { return bpf.Probe() }

// Probe implements Machine.
func (Local) Probe(ifindex, queue int) (xsk.Support, error) { return xsk.Probe(ifindex, queue) }

// Card implements Machine.
func (Local) Card(iface string) (nic.Card, error) { return nic.Read(iface) }

// Interfaces reads all interfaces by rtnetlink. It needs no privilege; what
// only ethtool knows stays empty where it is refused.
func (Local) Interfaces() ([]Interface, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	defer handle.Close()
	links, err := handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	tool, err := ethtool.NewEthtool()
	if err != nil {
		tool = nil
	} else {
		defer tool.Close()
	}
	var list []Interface
	for _, link := range links {
		i := describe(link)
		port, err := engine.ReadPort(i.Index)
		if err != nil {
			return nil, err
		}
		i.Addrs, i.VLANs = port.Addrs, port.VLANs
		if tool != nil {
			i.ask(tool)
		}
		list = append(list, i)
	}
	return list, nil
}

// describe takes over what rtnetlink says.
func describe(link netlink.Link) Interface {
	attrs := link.Attrs()
	i := Interface{Kind: link.Type(), Qdisc: "none", Queues: max(1, attrs.NumRxQueues)}
	i.Name, i.Index, i.MTU = attrs.Name, attrs.Index, attrs.MTU
	i.Up = attrs.Flags&net.FlagUp != 0
	i.Carrier = attrs.RawFlags&unix.IFF_LOWER_UP != 0
	i.Ethernet = attrs.EncapType == "ether" && len(attrs.HardwareAddr) == len(i.MAC)
	if i.Ethernet {
		copy(i.MAC[:], attrs.HardwareAddr)
	}
	if attrs.Xdp != nil && attrs.Xdp.Attached {
		i.XDP = attrs.Xdp.ProgId
		i.XDPMode = xdpMode(attrs.Xdp.AttachMode)
	}
	if qdisc, err := rootQdisc(link); err == nil && qdisc != "" {
		i.Qdisc = qdisc
	}
	return i
}

// xdpMode is where an XDP program runs, as rtnetlink says it.
func xdpMode(attached uint32) string {
	switch attached {
	case nl.XDP_ATTACHED_DRV:
		return bpf.Native.String()
	case nl.XDP_ATTACHED_SKB:
		return bpf.Generic.String()
	case nl.XDP_ATTACHED_HW:
		return "offloaded"
	}
	return "several modes"
}

// rootQdisc is the kind of the root queueing discipline, "" for noqueue that
// rtnetlink does not list.
func rootQdisc(link netlink.Link) (string, error) {
	list, err := netlink.QdiscList(link)
	if err != nil {
		return "", err
	}
	for _, q := range list {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q.Type(), nil
		}
	}
	return "", nil
}

// ask takes over what ethtool says.
func (i *Interface) ask(tool *ethtool.Ethtool) {
	deepstack.Deepen()
	if driver, err := tool.DriverName(i.Name); err == nil {
		i.Driver = driver
	}
	if c, err := tool.GetChannels(i.Name); err == nil && c.RxCount+c.CombinedCount > 0 {
		i.Queues = int(c.RxCount + c.CombinedCount)
	}
}

// User reads the capabilities and limits of the process.
func (Local) User() (User, error) {
	u := User{UID: os.Geteuid(), Caps: map[string]bool{}, CPUs: runtime.NumCPU()}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u, err
	}
	effective, err := capEff(string(status))
	if err != nil {
		return u, err
	}
	for _, c := range Capabilities {
		u.Caps[c.Name] = effective&(1<<c.Bit) != 0
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return u, fmt.Errorf("getrlimit: %w", err)
	}
	u.LockedBytes = limit.Cur
	memory := xsk.Linux().MemoryLimits()
	u.ChargedBytes, u.Cgroup = memory.Charged, memory.Cgroup
	u.HugePages, u.HugeKiB = hugePages("/sys/kernel/mm/hugepages")
	return u, nil
}

// capEff finds the effective capabilities in /proc/PID/status.
func capEff(status string) (uint64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return 0, fmt.Errorf("no CapEff in /proc/self/status")
}

// hugePages counts the free huge pages of the size that has most, of the smallest
// when there are none free, 0 where the kernel has no sizes.
func hugePages(dir string) (free, kib int) {
	sizes, err := filepath.Glob(filepath.Join(dir, "hugepages-*kB"))
	if err != nil {
		return 0, 0
	}
	for _, size := range sizes {
		var n, k int
		if _, err := fmt.Sscanf(filepath.Base(size), "hugepages-%dkB", &k); err != nil {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(size, "free_hugepages")); err == nil {
			n, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		if kib == 0 || n > free || (n == free && k < kib) {
			free, kib = n, k
		}
	}
	return free, kib
}
