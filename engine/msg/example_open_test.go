package msg_test

import (
	"context"
	"fmt"
	"log"
	"net/netip"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
)

// A server on a network interface: a device, the manager of its connections, and an endpoint.
func Example() {
	dev, err := engine.Open("eth0", engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	manager, err := cm.Open(dev, cm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer manager.Close()
	endpoint, err := msg.Open(dev, manager, msg.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer endpoint.Close()

	listener, err := endpoint.Listen(netip.MustParseAddrPort("0.0.0.0:7471"))
	if err != nil {
		log.Fatal(err)
	}
	if err := answerOne(listener); err != nil {
		log.Fatal(err)
	}
}

// A message and its answer: dial, send, receive, close.
func askOne(ctx context.Context, endpoint *msg.Endpoint, at netip.AddrPort) error {
	conn, err := endpoint.Dial(ctx, at)
	if err != nil {
		return err
	}
	if err := conn.Send(ctx, []byte("world")); err != nil {
		return err
	}
	buf := make([]byte, 100)
	n, err := conn.Receive(ctx, buf)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", buf[:n])
	return conn.Close(ctx)
}

// Messages in the background, with tags: a receive takes what its tag and mask fit, of any peer.
func ExampleEndpoint_PostReceive() {
	server, client, end := twoEndpoints()
	defer end()
	listener, err := server.Listen(at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	ctx := context.Background()
	accepted := make(chan *msg.Conn)
	go func() {
		conn, err := listener.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		accepted <- conn
	}()
	conn, err := client.Dial(ctx, at)
	if err != nil {
		log.Fatal(err)
	}
	<-accepted

	buf := make([]byte, 1<<20)
	receive := &msg.Receive{Buffers: [][]byte{buf}, Tag: 0x0700, Mask: 0xff00}
	if err := server.PostReceive(receive); err != nil {
		log.Fatal(err)
	}
	head, body := []byte("head, "), make([]byte, 300_000)
	send := &msg.Send{Buffers: [][]byte{head, body}, Tag: 0x0712}
	if err := conn.PostSend(send); err != nil {
		log.Fatal(err)
	}
	if err := receive.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	if err := send.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes with tag 0x%04x by %s: %s\n", receive.Length, receive.Tag,
		receive.Protocol, send.Choice.Why)
	// Output: 300006 bytes with tag 0x0712 by get: longer than the largest slot
}
