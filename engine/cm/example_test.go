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
	"xroce/roce"
	"xroce/roce/mem"
)

// openDevice opens a device on a simulated wire; engine.Open gives one on a network
// interface.
func openDevice(network *sim.Network, clock engine.Clock, number byte) *engine.Device {
	port, err1 := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, number}, MTU: 1500,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, number})},
	})
	dev, err2 := engine.OpenLink(port, port, engine.Options{Clock: clock})
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	return dev
}

// One host listens, the other dials and sends.
func Example() {
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	if err != nil {
		log.Fatal(err)
	}
	server, client := openDevice(network, clock, 1), openDevice(network, clock, 2)
	defer server.Close()
	defer client.Close()

	addr := netip.MustParseAddrPort("192.0.2.1:4791")
	said := make(chan string)
	ready := make(chan struct{})
	go serve(server, addr, ready, said)
	<-ready

	ctx := context.Background()
	manager, err := cm.Open(client, cm.Options{})
	if err != nil {
		log.Fatal(err)
	}
	cq, err := client.CreateCQ(16)
	if err != nil {
		log.Fatal(err)
	}
	conn, err := manager.Dial(ctx, addr, cm.Setup{
		PD: client.AllocPD(), Init: engine.QPInit{SendCQ: cq, RecvCQ: cq, MaxInline: 64},
	})
	if err != nil {
		log.Fatal(err)
	}
	err = conn.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline | roce.SendSignaled, Inline: []byte("hello"),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-said)
	conn.Close()
	if err := manager.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: hello
}

// serve takes one connection and tells what comes over it.
func serve(dev *engine.Device, addr netip.AddrPort, ready chan<- struct{}, said chan<- string) {
	ctx := context.Background()
	pd := dev.AllocPD()
	mr, err1 := dev.RegMR(pd, make([]byte, 64), mem.LocalWrite)
	cq, err2 := dev.CreateCQ(16)
	manager, err3 := cm.Open(dev, cm.Options{})
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Fatal(err)
	}
	l, err := manager.Listen(addr)
	if err != nil {
		log.Fatal(err)
	}
	close(ready)
	request, err := l.Accept(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = request.Accept(ctx, cm.Setup{
		PD: pd, Init: engine.QPInit{SendCQ: cq, RecvCQ: cq},
		Prepare: func(qp *engine.QP) error {
			return qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{mr.SGE(0, 64)}})
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	var wcs [1]roce.Completion
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		log.Fatal(err)
	}
	said <- string(mr.Bytes()[:wcs[0].ByteLen])
}
