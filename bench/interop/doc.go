// Command interop runs xroce against what others use on RoCE: the programs of
// rdma-core and perftest on Linux Soft-RoCE, in a VM of package softroce. Each
// program is met in both roles, over both path MTUs, IPv4 and IPv6, on a whole
// and on a lossy network, and after its device was taken away.
//
// Every packet on the wire is decoded and its ICRC verified by package wire, and
// the packets that are kept are read by tshark as well. With the programs of perftest
// the data are compared with the memory of xroce by package payload. What passed is the
// table in docs/interop.md; docs/ci.md says where this runs.
//
// The packages, each using only those above it:
//
//	payload            the data of a test, of what was heard and of the memory of xroce
//	internal/dialogue  what a host says, and how another one differs
//	internal/cases     what is run, and what came of it
//	internal/report    the tables of docs/interop.md
//	internal/lab       the VM, the namespace and the cable
//	internal/play      a case, from start to end
//
// How to run it:
//
//	go run ./bench/interop                       all of it
//	go run ./bench/interop --only 'rping/.*ipv6' some cases
//	go run ./bench/interop --list
//	go run ./bench/interop --exec 'ibv_devinfo'  a command in the VM
package main
