// Package msg sends messages of any size between devices, over connections of package cm: the
// machine of package roce/msg with a device, its memory and its connection manager.
//
//	endpoint, err := msg.Open(dev, manager, msg.Options{})
//	// One end:
//	listener, err := endpoint.Listen(netip.MustParseAddrPort("0.0.0.0:7471"))
//	conn, err := listener.Accept(ctx)
//	n, err := conn.Receive(ctx, buf)
//	// The other:
//	conn, err := endpoint.Dial(ctx, addr)
//	err = conn.Send(ctx, data)
//
// How a message travels is chosen for each: see roce/msg. Memory needs no registration by the
// caller; what is sent is not to be changed until Send returns.
//
// # Streams
//
// A Stream is a net.Conn, a StreamListener a net.Listener, for programs that want bytes:
//
//	listener, err := endpoint.ListenStream(netip.MustParseAddrPort("0.0.0.0:7471"))
//	err = server.Serve(listener)
//	// The other end:
//	client := http.Client{Transport: &http.Transport{DialContext: endpoint.DialContext}}
//
// Who writes copies into memory that goes to the peer as it is, who reads copies out of the
// memory where it arrived; ReadFrom and WriteTo lend that memory to a reader or a writer. It is all
// that a stream has: when the peer does not read, Write waits. A stream has the goroutine of its
// connection and no other. A peer that is silent because it is gone is noticed by who writes, and
// by who reads after Options.Machine.Keepalive and what its device needs to give the peer up.
//
// # Who drives
//
// An Endpoint is an engine.Service: the device calls it when work is complete and when it is
// time, also while the application computes or sleeps. It has a lock, which is taken before
// those of the device, and one goroutine of its own, which registers memory, so that no
// connection waits for that of another. All methods are safe for concurrent use.
package msg
