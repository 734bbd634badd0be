// Package engine joins the transport (roce) with a link (xsk) into a device
// that programs open, like an RDMA adapter:
//
//	dev, err := engine.Open("eth0", engine.Options{})
//	pd := dev.AllocPD()
//	mr, err := dev.RegMR(pd, buf, mem.LocalWrite|mem.RemoteWrite)
//	cq, err := dev.CreateCQ(128)
//	qp, err := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
//	err = qp.Connect(ctx, remote, engine.ConnectOptions{})
//	err = qp.PostSend(&roce.SendWR{...})
//	n, err := cq.Poll(wcs)
//
// # Progress
//
// A device has a queue: one NIC queue, one AF_XDP socket, and the QPs that live
// on it. Whoever holds the queue's progress lock moves packets. By default that
// is a background goroutine on a thread of its own, which spins for a while
// when there is nothing to do and then sleeps in poll(2). With Options.Busy it
// never sleeps. With Options.Direct there is no such goroutine: every call of
// CQ.Poll and CQ.Wait makes progress on the caller's own thread, which has the
// lowest latency, and nothing moves in between, no answer and no
// retransmission.
//
// QPs of one queue share it byte by byte, and those that answer go first; see
// turns. What a QP sends to another one of the same device never meets the link.
//
// # Events
//
// A CQ that is armed tells so on CQ.Events, or, with others, on a CompChannel.
// Device.Events tells what no completion does, the link going down for one. Both
// have a descriptor for poll(2) as well.
//
// # Concurrency
//
// All methods of Device, PD, MR, CQ and QP are safe for concurrent use, except
// that nothing may be used after its Close. Deregister and Close return only
// when no packet can touch the object any more.
package engine
