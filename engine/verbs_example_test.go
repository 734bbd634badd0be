package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// Two devices on a simulated wire; engine.Open gives one on a network interface.
func Example() {
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	if err != nil {
		log.Fatal(err)
	}
	type end struct {
		dev   *engine.Device
		mr    *engine.MR
		cq    *engine.CQ
		qp    *engine.QP
		local engine.Endpoint
	}
	var ends [2]end
	for i := range ends {
		port, err := network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, byte(i)}, MTU: 1500,
			Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})},
		})
		if err != nil {
			log.Fatal(err)
		}
		dev, err := engine.OpenLink(port, port, engine.Options{Clock: clock})
		if err != nil {
			log.Fatal(err)
		}
		defer dev.Close()
		pd := dev.AllocPD()
		mr, err1 := dev.RegMR(pd, make([]byte, 64), mem.LocalWrite|mem.RemoteWrite)
		cq, err2 := dev.CreateCQ(16)
		qp, err3 := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
		if err := errors.Join(err1, err2, err3); err != nil {
			log.Fatal(err)
		}
		if err := qp.Init(mem.RemoteWrite); err != nil {
			log.Fatal(err)
		}
		local, err := dev.Endpoint(qp, 1)
		if err != nil {
			log.Fatal(err)
		}
		ends[i] = end{dev, mr, cq, qp, local}
	}
	ctx := context.Background()
	for i, e := range ends {
		o := engine.ConnectOptions{SGIDIndex: 1}
		if err := e.qp.Connect(ctx, e.local, ends[1-i].local, o); err != nil {
			log.Fatal(err)
		}
	}

	from, to := ends[0], ends[1]
	n := copy(from.mr.Bytes(), "one-sided")
	err = from.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpWrite, Flags: roce.SendSignaled, SGList: []roce.SGE{from.mr.SGE(0, n)},
		RemoteAddr: to.mr.Addr(), RKey: to.mr.RKey(),
	})
	if err != nil {
		log.Fatal(err)
	}
	var wcs [1]roce.Completion
	if _, err := from.cq.Wait(ctx, wcs[:]); err != nil {
		log.Fatal(err)
	}
	to.mr.Deregister() // no packet touches the memory any more
	fmt.Println(wcs[0].Opcode, wcs[0].Status)
	fmt.Printf("%s\n", to.mr.Bytes()[:n])
	// Output:
	// RDMA_WRITE success
	// one-sided
}
