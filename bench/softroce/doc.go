// Package softroce runs a real peer: Linux Soft-RoCE (the rdma_rxe driver) with
// the programs of rdma-core and perftest, in a small virtual machine that is
// emulated in software, so it needs no RDMA hardware, no KVM, and nothing of the
// kernel that it runs on but tap devices.
//
//	namespace of a Site          this process                  QEMU
//	+------------------+        +---------------------+       +------------------+
//	| stack under test |  tap   | Cable: forwards,    | frames| eth0 -- rxe0     |
//	| on xr0           +--------+ loses, captures,    +-------+ ib_*, ibv_*,     |
//	|                  |        | verifies            |       | rping, ...       |
//	+------------------+        +---------------------+       |                  |
//	                             VM: orders, outputs  +-------+ agent            |
//	                                                  virtio  +------------------+
//
// Build makes the guest's kernel and root out of Debian packages, once, into a
// cache; none of them is installed on the machine. Boot starts a VM, and VM.Start
// runs commands in it by an agent of ours on a virtio-serial port, which is no
// network: what a Cable loses does not touch the orders.
//
// A Site is a network namespace with a tap device. Everything has names of its
// own and is gone after Close. When this process is killed the agent finds its
// port closed and powers the VM off, and the tap goes with its descriptor; the
// namespace's name and the files stay until Sweep, which knows by their names whose
// they were. Two processes may do all of this at once.
//
// A Site needs root. Building needs apt-get, dpkg-deb and xz; booting needs
// qemu-system-x86_64.
package softroce
