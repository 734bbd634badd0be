// Package vethpair makes two network namespaces joined by one virtual Ethernet
// cable: a private wire between two hosts that both run on this machine, for
// demonstrations, benchmarks and tests. No interface of the machine itself is
// touched.
//
//	 namespace xroce-PID-N-a             namespace xroce-PID-N-b
//	+--------------------------+        +--------------------------+
//	| xr0                      |  veth  | xr0                      |
//	| 10.r.s.1/24  fd..::1/64  +--------+ 10.r.s.2/24  fd..::2/64  |
//	+--------------------------+        +--------------------------+
//
// The namespaces have names, so `ip netns exec` and `ip netns del` work on them.
// A name carries the id of the process that made it; Sweep removes what dead
// processes left. Everything needs CAP_SYS_ADMIN and CAP_NET_ADMIN: root.
//
// The wire loses a share of the frames where Options.LossPPM says so, and none by default. A veth
// drops what exceeds its ring of 256 frames unless the sending device has a queueing discipline, so
// each end gets a pfifo (kernel drivers/net/veth.c v6.18, veth_xmit). Checksum offload is off: a
// frame that crosses into an AF_XDP socket would carry half a checksum.
//
// It is not internal to xsk, because the demo of cmd, bench and the tests of engine run
// on such a wire.
package vethpair
