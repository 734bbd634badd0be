// Package host is what a device asks of the machine around its link: which
// interface it runs on and with which addresses, which MAC address is the first
// hop to somewhere, and that the interface is in a multicast group.
//
// Host is what every link has. PortWatcher, RemovalWatcher, Router, GroupJoiner and MACJoiner are
// what a host may offer besides; who has one asks for them by type assertion. Kernel
// offers all of them for an interface of this machine. It is there on Linux only; the
// interfaces, Port and the GID table are on every system, for hosts that are no
// kernel, such as a simulated port.
//
// The package asks over rtnetlink, in the network namespace that Open was called
// in, and keeps sockets there for multicast memberships that receive nothing. It sends no
// packet of its own and changes nothing but these memberships and the kernel's
// neighbour table, which it has resolve what is not known. Of queue pairs, frames
// and the XDP program it knows nothing.
//
// Whoever opens a host closes it; a device that was given one closes it with
// itself. A Kernel has one goroutine, from Open to Close, which reads
// notifications and keeps a copy of the port and of the neighbour table. All
// methods are safe for concurrent use.
package host
