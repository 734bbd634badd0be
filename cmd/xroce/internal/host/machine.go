package host

import (
	"net/netip"

	"xroce/bpf"
	"xroce/engine"
	"xroce/engine/nic"
	"xroce/xsk"
)

// A Machine tells what it is. Local is the one that the program runs on; tests
// have others.
type Machine interface {
	// Kernel returns the release of the kernel.
	Kernel() (release string, err error)
	// Interfaces lists all interfaces of the network namespace.
	Interfaces() ([]Interface, error)
	// User tells what the process may do.
	User() (User, error)
	// BPF reports whether the XDP program can be loaded.
	BPF() (bpf.Support, error)
	// Card asks the driver of an interface.
	Card(iface string) (nic.Card, error)
	// Probe tries what AF_XDP can do on a queue of an interface.
	Probe(ifindex, queue int) (xsk.Support, error)
}

// An Interface is a network interface.
type Interface struct {
	engine.Port
	Ethernet bool   // with a MAC address, and not the loopback
	Carrier  bool   // something is at the other end of the cable
	Kind     string // of rtnetlink: device, veth, bridge, ...
	Driver   string // empty when unknown
	Queues   int    // receive queues that packets may come in on
	Qdisc    string // queueing discipline
	XDP      uint32 // id of the attached XDP program, 0 for none
	XDPMode  string // where that runs: native, generic or offloaded
}

// A User is what the process may do.
type User struct {
	UID         int
	Caps        map[string]bool // effective capabilities out of Capabilities
	LockedBytes uint64          // limit of locked memory, ^0 for none
	// ChargedBytes is what the memory cgroups have left, xsk.Unlimited for no limit, and
	// Cgroup the one that has least.
	ChargedBytes int64
	Cgroup       string
	CPUs         int
	HugePages    int // free ones
	HugeKiB      int // size of each
}

// Capabilities are the capabilities that xroce can use, with what needs them.
var Capabilities = []struct {
	Name, Use string
	Bit       int  // linux/capability.h
	Required  bool // to open a device
}{
	{"CAP_NET_RAW", "open AF_XDP sockets", 13, true},
	{"CAP_NET_ADMIN", "attach the XDP program", 12, true},
	{"CAP_BPF", "load the XDP program", 39, true},
	{"CAP_IPC_LOCK", "lock memory beyond the limit", 14, false},
	{"CAP_SYS_ADMIN", "make network namespaces (xroce demo)", 21, false},
}

// Find returns the interface of this name, nil when there is none.
func Find(list []Interface, name string) *Interface {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// Devices returns the interfaces that can carry RoCE, in their order.
func Devices(list []Interface) []Interface {
	var devices []Interface
	for _, i := range list {
		if i.Ethernet {
			devices = append(devices, i)
		}
	}
	return devices
}

// WithAddr returns the interface that has this address, nil when none has.
func WithAddr(list []Interface, addr netip.Addr) *Interface {
	for i := range list {
		for _, a := range list[i].Addrs {
			if a == addr.Unmap().WithZone("") {
				return &list[i]
			}
		}
	}
	return nil
}
