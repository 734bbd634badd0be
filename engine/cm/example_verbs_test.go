package cm_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce/mem"
)

// check ends an example.
func check(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}
}

// A station is a device with what connections need.
type station struct {
	dev     *engine.Device
	manager *cm.Manager
	pd      *engine.PD
}

// newStations makes two on a simulated wire.
func newStations() (client, server station) {
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	check(err)
	for i, s := range []*station{&client, &server} {
		s.dev = openDevice(network, clock, byte(i+1))
		s.manager, err = cm.Open(s.dev, cm.Options{})
		check(err)
		s.pd = s.dev.AllocPD()
	}
	return client, server
}

// close gives back what a station has.
func (s *station) close() { check(s.manager.Close(), s.dev.Close()) }

// lend listens and lends memory to who connects: where it is stands in the private data of the
// answer.
func (s *station) lend(ctx context.Context, at netip.AddrPort, memory []byte) {
	const rights = mem.LocalWrite | mem.RemoteWrite | mem.RemoteAtomic
	mr, err := s.dev.RegMR(s.pd, memory, rights)
	check(err)
	l, err := s.manager.Listen(at)
	check(err)
	go func() {
		request, err := l.Accept(ctx)
		check(err)
		setup := cm.Setup{PD: s.pd, Access: rights, Private: make([]byte, cm.RemoteLen)}
		cm.RemoteOf(mr, 0).Put(setup.Private)
		_, err = request.Accept(ctx, setup)
		check(err)
	}()
}

// A program writes to memory that another one lends.
func ExampleConn_Write() {
	ctx, at := context.Background(), netip.MustParseAddrPort("192.0.2.2:7471")
	client, server := newStations()
	memory := make([]byte, 64)
	server.lend(ctx, at, memory)

	conn, err := client.manager.Dial(ctx, at, cm.Setup{PD: client.pd})
	check(err)
	to, err := cm.ParseRemote(conn.Private())
	check(err)
	data := []byte("hello, memory")
	mr, err := client.dev.RegMR(client.pd, data, 0)
	check(err)
	err = conn.Write(ctx, to, mr.SGE(0, len(data)))
	check(err)

	fmt.Printf("%s\n", memory[:len(data)])
	check(conn.Close())
	client.close()
	server.close()
	// Output: hello, memory
}

// A program draws numbers from a counter in memory of another one.
func ExampleConn_FetchAdd() {
	ctx, at := context.Background(), netip.MustParseAddrPort("192.0.2.2:7471")
	client, server := newStations()
	server.lend(ctx, at, make([]byte, 8))

	conn, err := client.manager.Dial(ctx, at, cm.Setup{PD: client.pd})
	check(err)
	counter, err := cm.ParseRemote(conn.Private())
	check(err)
	for range 3 {
		number, err := conn.FetchAdd(ctx, counter, 1)
		check(err)
		fmt.Println(number)
	}

	check(conn.Close())
	client.close()
	server.close()
	// Output:
	// 0
	// 1
	// 2
}
