// Package engine joins the transport (roce) with a link (xsk) into a device
// that programs open, like an RDMA adapter:
//
//	dev, err := engine.Open("eth0", engine.Options{})
//	pd := dev.AllocPD()
//	mr, err := dev.RegMR(pd, buf, mem.LocalWrite|mem.RemoteWrite)
//	cq, err := dev.CreateCQ(128)
//	qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
//	err = qp.Init(mem.RemoteWrite)
//	local, err := dev.Endpoint(qp, 1)
//	// Tell the peer local, and learn remote from it.
//	err = qp.Connect(ctx, local, remote, engine.ConnectOptions{SGIDIndex: 1})
//	err = qp.PostSend(&roce.SendWR{...})
//	n, err := cq.Poll(wcs)
//
// The names are those of verbs: each comment says which call of libibverbs a
// method is, and the numbers of opcodes, flags, states and events are the same.
//
// # Queue pairs
//
// RC, UC and the two ends of XRC are connected: Init, then Connect. UD is made
// ready by Start, and each send names its destination: CreateAH, for a unicast
// address or a multicast group, and ReplyVector for an answer. AttachMulticast
// receives what is sent to a group. RAW_PACKET sends and receives whole Ethernet
// frames: Options.RawPackets, Start, AttachEtherType. Modify is there for every
// other order of things.
//
// # Errors
//
// An error says what was wrong and what was expected. It wraps roce.ErrInvalid
// for an argument, roce.ErrState for a queue pair in the wrong state,
// roce.ErrQueueFull for a post without room, and ErrBusy for closing what is in
// use. What a peer does wrong is no error but a counter, a completion status or
// an event.
//
// # Closing
//
// Objects close in the reverse order of their making: QPs first, then SRQs, then
// CQs and XRC domains, then completion channels, regions and the PD. What is
// closed too early says ErrBusy and stays. Closing the device ends everything at
// once, and what is left of the objects may still be closed, in any time. A device ends
// by itself when its interface is removed or its link fails: Device.Done is closed then,
// and Device.Err says why.
//
// # Progress
//
// A device has queues, one for each driver (Options.Drivers, one by default): receive
// queues of the NIC with an AF_XDP socket each, and the QPs that live there. Whoever
// holds a queue's progress lock moves its packets. By default that is a background
// goroutine on a thread of its own, which spins for a while when there is nothing to do
// and then sleeps in poll(2), and who waits for completions or events: while somebody
// does, the goroutine stays away. With Options.Busy nobody sleeps. With Options.Direct
// there is no such goroutine: every call of CQ.Poll and CQ.Wait makes progress on the
// caller's own thread, which has the lowest latency, and nothing moves in between, no
// answer and no retransmission. A device with a Service is the exception: there a
// goroutine stands by, which sleeps in poll(2) while nobody else polls or waits.
//
// QPs of one queue share it byte by byte, and those that answer go first: deficit
// round robin, see package engine/internal/sched. What a QP sends to another one of
// the same device never meets the link.
//
// # Services
//
// What lives above the device by its time and completions, such as the connection
// manager, is a Service: AddService has the device call it, on a goroutine of the
// device and not on the thread that moves packets.
//
// # Events
//
// A CQ that is armed tells so on CQ.Events, or, with others, on a CompChannel.
// Device.Events tells what no completion does, the link going down for one. Both
// have a descriptor for poll(2) as well.
//
// # Locks
//
// The life of objects (create, close, who uses what) has a lock of the device, packets
// have the progress lock of their queue. The life lock comes first, then the progress
// locks in the order of the queues, then everything else; locks.go has the whole order.
// What a queue looks up for a packet (QPs by number, members of groups, EtherTypes) is
// the device's, and is read without a lock.
//
// # Concurrency
//
// All methods of all types are safe for concurrent use, except that nothing may
// be used after its Close. Deregister and Close return only when no packet can
// touch the object any more. In direct mode, a call that needs the progress lock
// wakes a goroutine that sleeps in CQ.Wait or CompChannel.GetEvent, which then waits
// on.
//
// # Other systems
//
// AF_XDP is Linux. Elsewhere the package compiles, and OpenLink makes a device of
// any other link, such as a port of package sim. Open, Device.AllocMR, on-demand
// paging and Device.EventFD fail with errors.ErrUnsupported there, and a CompChannel
// has no descriptor.
//
// # What it touches
//
// One link for each queue, the XDP program of package bpf on the link's interface, the
// machine through package host, and a log/slog logger. It prints nothing and imports no
// command. Objects are owned by whoever made them, and the device closes what is left.
package engine
