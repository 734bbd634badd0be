// Package bpf steers RoCE packets to AF_XDP sockets: one XDP program (xdp.c),
// the loader that attaches it to an interface (Attach), and the same decision
// in Go (Classify) for tests and simulated links.
//
// # What the program takes
//
// A packet is redirected to the socket of its receive queue when it is one of
// these and its destination is owned (Program.Own). It may have up to two VLAN
// tags (TPID 0x8100 or 0x88A8); tags do not matter for owning.
//
//	RoCE v2        UDP over IPv4 or IPv6, port 4791      IP destination owned
//	RoCE v1        EtherType 0x8915                      MAC destination owned
//	native IB      EtherType 0x88B5                      MAC destination owned
//
// Multicast groups, IP or MAC, are owned like any other address. 0x88B5 is the
// IEEE's first EtherType for local experiments; here it carries InfiniBand
// link-layer packets. A MAC address is owned for one of the two EtherTypes, so
// that frames of a kind that nobody here wants go on to the kernel.
//
// Everything else passes to the kernel as if there were no program: ARP,
// neighbour discovery, ping, SSH, and RoCE for addresses of others, so the
// kernel's own RoCE driver can go on beside us with other addresses. The
// program never drops and never changes a packet. In particular these pass:
//
//   - IPv4 fragments: RoCE is never fragmented, and only the first has a port;
//   - IPv6 with any extension header, for which RoCE has no use;
//   - more than two VLAN tags;
//   - packets with wrong versions, lengths that disagree, or cut short.
//
// The program judges the layers that it reads and no others. Checksums, GRH,
// BTH and ICRC are for the receiver of the packet to check. The destination
// MAC address of RoCE v2 is not looked at: on a promiscuous interface, packets
// for our IP address and another MAC address are taken too.
//
// # Maps
//
//	name      type           key                        value
//	xsks      XSKMAP         u32 receive queue          u32 socket
//	owned     HASH           struct key, 20 bytes:      u8, always 1
//	                           addr[16], kind, zero[3]
//	near      ARRAY          u32 0                      four of those, or zeros
//	counters  PERCPU_ARRAY   u32 reason                 u64 packets, u64 bytes
//
// kind is 1 for IPv4, mapped to ::ffff:a.b.c.d, 2 for IPv6, and 3 and 4 for a MAC
// address followed by zeros, for RoCE v1 and for native InfiniBand. What is in near is in owned,
// too, and found sooner: few hosts own more.
//
// # Counters
//
// Each packet that the program sees counts once, under its Reason.
//
//	redirect_v2_ipv4   RoCE v2 over IPv4, redirected
//	redirect_v2_ipv6   RoCE v2 over IPv6, redirected
//	redirect_v1        RoCE v1, redirected
//	redirect_native    native InfiniBand, redirected
//	pass_not_roce      other EtherType, protocol or port
//	pass_not_ours      RoCE for an address that is not owned
//	pass_fragment      UDP in an IPv4 fragment, or an IPv6 fragment header
//	pass_extension     another IPv6 extension header
//	pass_malformed     IP version, header length, or lengths that disagree
//	pass_truncated     the frame ends before the packet does
//	pass_vlan_depth    more than two VLAN tags
//	pass_no_socket     ours, but the queue has no socket
//
// A redirected packet can still be lost at the socket: the socket's own
// statistics tell (XDP_STATISTICS), or, when it is bound to another queue or
// interface, the tracepoint xdp:xdp_redirect_err alone.
//
// # Kernel, privileges, modes
//
// Linux 5.18 or later, for multi-buffer programs: an MTU above a page needs
// them in native mode. Kernel BTF is not needed. Loading needs CAP_BPF and
// CAP_NET_ADMIN, or CAP_SYS_ADMIN; with less, errors say what is missing. Probe
// tells beforehand. The name of a foreign program can be read with
// CAP_SYS_ADMIN only. CAP_PERFMON is not needed, which costs packets with IPv4
// options one helper call more.
//
// Native mode runs in the driver. Generic mode runs on any device, slower, and
// behind GRO: turn off rx-udp-gro-forwarding and rx-gro-list (ethtool -K) where
// they are on, or UDP packets arrive merged.
//
// # What remains
//
// Nothing. The program is attached by a bpf_link and pinned nowhere: link, maps
// and program vanish with the last file descriptor, at Close or when the
// process dies in whatever way. On some real NICs attaching and detaching
// reset the rings, which interrupts the link for a moment.
package bpf
