// Package live sends frames through the XDP transmit path of a driver: without a
// socket buffer for each, which is most of what an AF_XDP socket in copy mode costs.
//
// The frames are written into a map that the kernel shares with us. Then the
// program of live.c is run with BPF_PROG_RUN and BPF_F_TEST_XDP_LIVE_FRAMES
// (kernel Documentation/bpf/bpf_prog_run.rst): once a frame, it copies the next one
// into a page of the kernel and redirects that to the interface.
//
// # What was sent
//
// The kernel hands redirected frames to the driver 16 at a time, and what came of
// those is told by the tracepoint xdp:xdp_devmap_xmit alone, to which the second
// program of live.c is attached. Frames that a full ring did not take are the last
// of the 16, and go again in their place: none is lost and none overtakes another. Frames
// that the kernel does not even hand to the driver are lost when others of the same
// 16 were sent, and counted; when none was sent at all, nothing is lost: Run says that the
// interface refuses them.
//
// # What it needs
//
// Linux 5.18 and its BTF (/sys/kernel/btf/vmlinux), CAP_SYS_ADMIN, and a driver with
// ndo_xdp_xmit. A veth device has it when its peer has an XDP program or GRO.
//
// Nothing is attached to the interface. The program is attached to the loopback
// interface of a network namespace of its own, which nobody else sees: a program that is
// attached nowhere is entered into the table of XDP programs in use at the begin of each run, and
// taken out at its end, and either waits for every processor (kernel
// kernel/bpf/dispatcher.c), some milliseconds for a run that takes a quarter of one.
//
// A run costs about a tenth of a millisecond, because the kernel makes a pool of pages
// for each: it pays with hundreds of frames at a time.
package live
