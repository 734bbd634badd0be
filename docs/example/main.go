package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// An end is one host with all that its connection needs.
type end struct {
	dev   *engine.Device
	mr    *engine.MR
	cq    *engine.CQ
	qp    *engine.QP
	local engine.Endpoint // what the other end must be told
}

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	if err != nil {
		return err
	}
	var ends [2]*end
	for i := range ends {
		if ends[i], err = open(network, clock, byte(i+1)); err != nil {
			return err
		}
		defer ends[i].dev.Close()
	}
	a, b := ends[0], ends[1]
	options := engine.ConnectOptions{SGIDIndex: 1}
	err = errors.Join(a.qp.Connect(ctx, a.local, b.local, options),
		b.qp.Connect(ctx, b.local, a.local, options))
	if err != nil {
		return err
	}
	return errors.Join(send(ctx, a, b, "two-sided"), write(ctx, a, b, "one-sided"))
}

// open makes a device on the network, and on it a region of memory and a queue pair.
func open(network *sim.Network, clock engine.Clock, number byte) (*end, error) {
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, number}, MTU: 1500,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, number})},
	})
	if err != nil {
		return nil, err
	}
	dev, err := engine.OpenLink(port, port, engine.Options{Clock: clock})
	if err != nil {
		return nil, err
	}
	pd := dev.AllocPD()
	mr, err1 := dev.RegMR(pd, make([]byte, 64), mem.LocalWrite|mem.RemoteWrite)
	cq, err2 := dev.CreateCQ(16)
	qp, err3 := dev.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq})
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	if err := qp.Init(mem.RemoteWrite); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	local, err := dev.Endpoint(qp, 1) // of the IPv4 address
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &end{dev, mr, cq, qp, local}, nil
}

// send has a text received where the other end wants it.
func send(ctx context.Context, from, to *end, text string) error {
	err := to.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{to.mr.SGE(0, 32)}})
	if err != nil {
		return err
	}
	n := copy(from.mr.Bytes(), text)
	err = from.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{from.mr.SGE(0, n)},
	})
	if err != nil {
		return err
	}
	if _, err := completion(ctx, from.cq); err != nil {
		return err
	}
	wc, err := completion(ctx, to.cq)
	if err != nil {
		return err
	}
	fmt.Printf("SEND of %d bytes: %s\n", wc.ByteLen, to.mr.Bytes()[:wc.ByteLen])
	return nil
}

// write puts a text into the other end's memory, of which that end hears nothing.
func write(ctx context.Context, from, to *end, text string) error {
	n := copy(from.mr.Bytes(), text)
	err := from.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpWrite, Flags: roce.SendSignaled, SGList: []roce.SGE{from.mr.SGE(0, n)},
		RemoteAddr: to.mr.Addr() + 32, RKey: to.mr.RKey(),
	})
	if err != nil {
		return err
	}
	if _, err := completion(ctx, from.cq); err != nil {
		return err
	}
	if err := to.mr.Deregister(); err != nil { // no packet touches the memory any more
		return err
	}
	fmt.Printf("WRITE of %d bytes: %s\n", n, to.mr.Bytes()[32:][:n])
	return nil
}

// completion waits for the next one and wants it to be a success.
func completion(ctx context.Context, cq *engine.CQ) (roce.Completion, error) {
	var wcs [1]roce.Completion
	if _, err := cq.Wait(ctx, wcs[:]); err != nil {
		return roce.Completion{}, err
	}
	return wcs[0], wcs[0].Err()
}
