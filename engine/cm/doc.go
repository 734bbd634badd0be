// Package cm connects queue pairs of devices by name: the connection manager on a
// device, with the addresses of rdma_cm (IBA chapter 12, annex A11). Peers may be
// of this package or programs on librdmacm.
//
//	manager, err := cm.Open(dev, cm.Options{})
//	// The passive end:
//	l, err := manager.Listen(netip.MustParseAddrPort("0.0.0.0:4791"))
//	request, err := l.Accept(ctx)
//	conn, err := request.Accept(ctx, cm.Setup{PD: pd, Init: init, Prepare: postReceives})
//	// The active end:
//	conn, err := manager.Dial(ctx, addr, cm.Setup{PD: pd, Init: init, Prepare: postReceives})
//	// Both:
//	err = conn.QP().PostSend(wr)
//	conn.Close()
//
// A Conn is an RC queue pair that is connected: in RTS, with the numbers that both
// ends agreed on. When the peer hangs up the queue pair goes to ERR, what was
// posted is flushed, and Conn.Done is closed.
//
// Who wants remote memory and no more leaves out the completion queues, and calls:
//
//	conn, err := manager.Dial(ctx, addr, cm.Setup{PD: pd})
//	to, err := cm.ParseRemote(conn.Private()) // made by cm.RemoteOf, sent in Setup.Private
//	err = conn.Write(ctx, to, mr.SGE(0, n))   // Read, FetchAdd, CompareSwap, Send, Receive
//
// Such a call waits. It may be made by many goroutines at once, and when it has returned,
// also because its context ended, nothing touches its memory any more: Conn.Write says what
// that costs.
//
// DialService and ListenService are for service IDs that are no ports of the TCP space.
// Setup.Require is for extensions that must be used, Setup.Keepalive for peers that may die
// while nothing is asked of them.
//
// Dial and ListenXRC connect queue pairs of XRC, too: an XRC_SEND to an XRC_RECV. DialService
// and ListenUC do it for UC.
//
// ListenDatagram and Lookup do the same for UD: who asks learns the number and the
// Q_Key of a queue pair, and gets an address handle.
//
// # The manager
//
// A Manager is the owner of the device's QP 1. It is an engine.Service: the device
// calls it when a MAD has come and when a timer has run out, and it joins QP 1 with a
// machine of roce/cm, whose timers and time these are. All its methods are safe for
// concurrent use. It ends with Close, which tells the peers, or when its device does.
// It has one lock, which is taken before those of the device, and no goroutine but short
// ones that resolve addresses, 64 at most, so that nothing else waits for a neighbour.
//
// Requests may come in anybody's name. Answers go back to the station that asked, and a
// request is shown to the application when the way to its host is known; what is not known
// is asked for at a bounded rate. Who asks in the name of a host that is there cannot be told from
// it before it confirms, so who serves clients that he does not know answers several at a time, by
// a Meeting.
//
// On a device in direct mode packets move while somebody polls or waits there. With a
// manager they move at other times as well, because a goroutine of the device stands by.
// Dial, Accept and the end of a connection need no application that polls, and the
// goroutine does not wake up while there is nothing to do.
//
// # Queue pair numbers
//
// After a connection packets of it may still be under way, so its number must not
// go to another one at once. Conn.Close gives the queue pair back only after the
// time-wait, half a second with the defaults, and minutes if a peer wants that: until then
// its CQs and its PD are in use. Conn.Released tells. Conn.Destroy gives all back at once
// but the number, which rests.
package cm
