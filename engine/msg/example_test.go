package msg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
)

// Where the examples listen.
var at = netip.MustParseAddrPort("192.0.2.2:7471")

// openEndpoint makes an endpoint on a simulated wire; with engine.Open it is one on a network
// interface.
func openEndpoint(network *sim.Network, n byte) (*msg.Endpoint, func()) {
	_, endpoint, end := openDevice(network, n)
	return endpoint, end
}

// openDevice is openEndpoint with the device.
func openDevice(network *sim.Network, n byte) (*engine.Device, *msg.Endpoint, func()) {
	port, err1 := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, n})},
	})
	dev, err2 := engine.OpenLink(port, port, engine.Options{})
	manager, err3 := cm.Open(dev, quick)
	endpoint, err4 := msg.Open(dev, manager, msg.Options{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		log.Fatal(err)
	}
	return dev, endpoint, func() {
		if err := errors.Join(endpoint.Close(), manager.Close(), dev.Close()); err != nil {
			log.Fatal(err)
		}
	}
}

// twoEndpoints makes the two ends of the examples; end closes them.
func twoEndpoints() (server, client *msg.Endpoint, end func()) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		log.Fatal(err)
	}
	client, end1 := openEndpoint(network, 1)
	server, end2 := openEndpoint(network, 2)
	return server, client, func() { end1(); end2() }
}

// Ten lines to a message: dial, send, receive, close.
func ExampleEndpoint_Dial() {
	server, endpoint, end := twoEndpoints()
	defer end()
	listener, err := server.Listen(at)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- answerOne(listener) }()

	fmt.Println(askOne(context.Background(), endpoint, at), <-done)
	// Output:
	// hello, world
	// <nil> <nil>
}

// answerOne is ten lines to a server: accept, receive, send, close.
func answerOne(listener *msg.Listener) error {
	defer listener.Close()
	ctx := context.Background()
	conn, err := listener.Accept(ctx)
	if err != nil {
		return err
	}
	buf := make([]byte, 100)
	n, err := conn.Receive(ctx, buf)
	if err != nil {
		return err
	}
	if err := conn.Send(ctx, fmt.Appendf(nil, "hello, %s", buf[:n])); err != nil {
		return err
	}
	return conn.Close(ctx)
}

// A server that answers calls by a handler, and posts no receive.
func ExampleEndpoint_Handle() {
	server, endpoint, end := twoEndpoints()
	defer end()
	listener, err := server.Listen(at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() { _, _ = listener.Accept(context.Background()) }()

	const greet = 1 // the number of the handler
	err = server.Handle(greet, func(m *msg.Active) {
		_ = m.From.Inject(m.Tag, fmt.Appendf(nil, "hello, %s", m.Data)) // does not wait
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	conn, err := endpoint.Dial(ctx, at)
	if err != nil {
		log.Fatal(err)
	}
	if err := conn.SendActive(ctx, greet, []byte("world")); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := conn.Receive(ctx, buf)
	fmt.Printf("%s %v\n", buf[:n], err)
	// Output: hello, world <nil>
}

// Messages whose length is not known before: who receives looks first. One with another tag is
// left for others.
func ExampleEndpoint_Claim() {
	server, endpoint, end := twoEndpoints()
	defer end()
	listener, err := server.Listen(at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	ctx := context.Background()
	conn, err := endpoint.Dial(ctx, at)
	if err != nil {
		log.Fatal(err)
	}
	other := &msg.Send{Buffers: [][]byte{make([]byte, 10)}, Tag: 8}
	text := &msg.Send{Buffers: [][]byte{[]byte("two "), []byte("pieces")}, Tag: 7}
	if err := errors.Join(conn.PostSend(other), conn.PostSend(text)); err != nil {
		log.Fatal(err)
	}
	m, err := server.Claim(ctx, 7, ^uint64(0), nil)
	if err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, m.Length)
	n, err := m.Receive(ctx, buf)
	fmt.Printf("tag %d: %d bytes, %s, %v\n", m.Tag, n, buf, err)
	rest, _ := server.TryProbe(0, 0, m.From)
	fmt.Printf("tag %d: %d bytes\n", rest.Tag, rest.Length)
	// Output:
	// tag 7: 10 bytes, two pieces, <nil>
	// tag 8: 10 bytes
}

// A server of net/http, and a client that reaches it.
func ExampleEndpoint_ListenStream() {
	endpoint, other, end := twoEndpoints()
	defer end()
	listener, err := endpoint.ListenStream(at)
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello, %s", r.URL.Path[1:])
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	transport := &http.Transport{DialContext: other.DialContext}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	response, err := client.Get("http://192.0.2.2:7471/world")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	fmt.Printf("%s %v\n", body, err)
	// Output: hello, world <nil>
}

// Bytes both ways, and an end of one's own direction that the peer sees.
func ExampleEndpoint_DialStream() {
	server, endpoint, end := twoEndpoints()
	defer end()
	listener, err := server.ListenStream(at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		peer, err := listener.Accept()
		if err != nil {
			return
		}
		defer peer.Close()
		_, _ = io.Copy(peer, peer) // in the memory of the stream, until CloseWrite
	}()

	stream, err := endpoint.DialStream(context.Background(), at)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	if _, err := io.WriteString(stream, "there and back"); err != nil {
		log.Fatal(err)
	}
	if err := stream.CloseWrite(); err != nil {
		log.Fatal(err)
	}
	all, err := io.ReadAll(stream)
	fmt.Printf("%s %v\n", all, err)
	// Output: there and back <nil>
}
