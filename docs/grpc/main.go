package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
)

// at is where the server listens.
var at = netip.MustParseAddrPort("192.0.2.2:7480")

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		return err
	}
	var ends [2]*end
	for i := range ends {
		if ends[i], err = open(network, byte(i+1)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ends[i].close()) }()
	}
	listener, err := ends[1].endpoint.ListenStream(at)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	server.RegisterService(&service, echo{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	err = talk(ctx, ends[0].endpoint)
	server.Stop()
	return errors.Join(err, <-served)
}

// talk is the client.
func talk(ctx context.Context, endpoint *msg.Endpoint) error {
	conn, err := grpc.NewClient("passthrough:///"+at.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return endpoint.DialContext(ctx, "tcp", address)
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, data := range [][]byte{[]byte("hello"), bytes.Repeat([]byte("megabyte"), 1<<17)} {
		var answer wrapperspb.BytesValue
		if err := conn.Invoke(ctx, onceMethod, wrapperspb.Bytes(data), &answer); err != nil {
			return err
		}
		if !bytes.Equal(answer.Value, data) {
			return fmt.Errorf("%d bytes came back as others", len(data))
		}
		fmt.Printf("once: %d bytes\n", len(data))
	}
	return stream(ctx, conn)
}

// stream sends many messages without waiting for the answers.
func stream(ctx context.Context, conn *grpc.ClientConn) error {
	s, err := conn.NewStream(ctx, &service.Streams[0], streamMethod)
	if err != nil {
		return err
	}
	const messages, size = 1000, 3000
	sent := make(chan error, 1)
	go func() {
		for n := range messages {
			if err := s.SendMsg(wrapperspb.Bytes(bytes.Repeat([]byte{byte(n)}, size))); err != nil {
				sent <- err
				return
			}
		}
		sent <- s.CloseSend()
	}()
	for n := range messages {
		var m wrapperspb.BytesValue
		if err := s.RecvMsg(&m); err != nil {
			return err
		}
		if !bytes.Equal(m.Value, bytes.Repeat([]byte{byte(n)}, size)) {
			return fmt.Errorf("message %d of the stream came back as another", n)
		}
	}
	if err := s.RecvMsg(&wrapperspb.BytesValue{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the stream does not end: %v", err)
	}
	fmt.Printf("stream: %d messages of %d bytes\n", messages, size)
	return <-sent
}

// An end is a host with an endpoint.
type end struct {
	dev      *engine.Device
	manager  *cm.Manager
	endpoint *msg.Endpoint
}

// open makes a host on the network.
func open(network *sim.Network, number byte) (e *end, err error) {
	e = &end{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, number}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, number})},
	})
	if err != nil {
		return e, err
	}
	if e.dev, err = engine.OpenLink(port, port, engine.Options{}); err != nil {
		return e, err
	}
	if e.manager, err = cm.Open(e.dev, cm.Options{}); err != nil {
		return e, err
	}
	e.endpoint, err = msg.Open(e.dev, e.manager, msg.Options{})
	return e, err
}

// close gives back what open made.
func (e *end) close() (err error) {
	if e.endpoint != nil {
		err = errors.Join(err, e.endpoint.Close())
	}
	if e.manager != nil {
		err = errors.Join(err, e.manager.Close())
	}
	if e.dev != nil {
		err = errors.Join(err, e.dev.Close())
	}
	return err
}
