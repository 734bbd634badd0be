package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// errBind means that a work request on our own keys failed.
var errBind = errors.New("load: a bind or an invalidation failed")

// Keys does and undoes one thing with memory keys again and again, on a device without
// a kernel: "register" a region of o.Message bytes and deregisters it; "bind" binds a
// window of type 2 to one and invalidates it, by two work requests; "rebind" binds one
// of type 1 anew, by the verb.
func Keys(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	k, err := newKeyBench(o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.dev.Close()) }()
	step, err := k.step(o.Mode)
	if err != nil {
		return r, err
	}
	if err := worker.Ready(in, out); err != nil {
		return r, err
	}
	var total uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), total) {
		for range keyBatch {
			if err := step(); err != nil {
				return r, err
			}
		}
		total += keyBatch
	}
	return report(o, w, total, "no kernel", nil), nil
}

// keyBatch is how often a step is done between two looks at the clock.
const keyBatch = 16

// A keyBench is a device with a queue pair that is connected to itself.
type keyBench struct {
	dev    *engine.Device
	pd     *engine.PD
	cq     *engine.CQ
	qp     *engine.QP
	memory []byte // never touched: it costs no pages
	region *engine.MR
	window *engine.MW
}

func newKeyBench(o worker.Options) (*keyBench, error) {
	if o.Message <= 0 {
		return nil, fmt.Errorf("load: a region of %d bytes", o.Message)
	}
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	if err != nil {
		return nil, err
	}
	port, err := network.NewPort(sim.PortConfig{
		Name: "keys", MAC: [6]byte{2, 0, 0, 0, 0, 1}, MTU: 4200,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, 1})},
	})
	if err != nil {
		return nil, err
	}
	k := &keyBench{memory: make([]byte, o.Message)}
	k.dev, err = engine.OpenLink(port, port, engine.Options{
		Clock: clock, Direct: true, Rand: rand.NewPCG(1, 2),
	})
	if err != nil {
		return nil, err
	}
	if err := k.prepare(); err != nil {
		return nil, errors.Join(err, k.dev.Close())
	}
	return k, nil
}

// prepare makes what the steps work on.
func (k *keyBench) prepare() (err error) {
	k.pd = k.dev.AllocPD()
	if k.cq, err = k.dev.CreateCQ(16); err != nil {
		return err
	}
	k.qp, err = k.dev.CreateQP(k.pd, engine.QPInit{SendCQ: k.cq, RecvCQ: k.cq})
	if err != nil {
		return err
	}
	if err = k.qp.Init(mem.RemoteWrite); err != nil {
		return err
	}
	end, err := k.dev.Endpoint(k.qp, 1)
	if err != nil {
		return err
	}
	err = k.qp.Connect(context.Background(), end, end, engine.ConnectOptions{SGIDIndex: 1})
	if err != nil {
		return err
	}
	k.region, err = k.dev.RegMR(k.pd, k.memory, mem.LocalWrite|mem.MWBind)
	return err
}

// step returns a function that does the step of a mode once.
func (k *keyBench) step(mode string) (func() error, error) {
	typ := mem.WindowType2
	switch mode {
	case "register":
		return k.register, nil
	case "rebind":
		typ = mem.WindowType1
	case "bind":
	default:
		return nil, fmt.Errorf("load: no step %q", mode)
	}
	var err error
	if k.window, err = k.pd.AllocMW(typ); err != nil {
		return nil, err
	}
	if typ == mem.WindowType1 {
		return k.rebind, nil
	}
	return k.bind, nil
}

// register makes a region and ends it.
func (k *keyBench) register() error {
	mr, err := k.dev.RegMR(k.pd, k.memory, mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead)
	if err != nil {
		return err
	}
	return mr.Deregister()
}

// bind binds the window of type 2 and frees it; the second request is the only one
// with a completion.
func (k *keyBench) bind() error {
	next := mem.NextKey(k.window.RKey())
	err := k.qp.PostSend(&roce.SendWR{Opcode: roce.OpBindMW, Bind: mem.Bind{
		Window: k.window.RKey(), NewKey: next, LKey: k.region.LKey(),
		Addr: k.region.Addr(), Length: uint64(len(k.memory)), Access: mem.RemoteWrite,
	}})
	if err != nil {
		return err
	}
	err = k.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: next,
	})
	if err != nil {
		return err
	}
	return k.done()
}

// rebind binds the window of type 1 anew.
func (k *keyBench) rebind() error {
	_, err := k.window.Bind(k.qp, engine.MWBind{
		Flags: roce.SendSignaled, MR: k.region, Addr: k.region.Addr(),
		Length: uint64(len(k.memory)), Access: mem.RemoteWrite,
	})
	if err != nil {
		return err
	}
	return k.done()
}

// done polls for a completion.
func (k *keyBench) done() error {
	var wc [1]roce.Completion
	for {
		switch n, err := k.cq.Poll(wc[:]); {
		case err != nil:
			return err
		case n == 0:
		case wc[0].Status != roce.StatusSuccess:
			return fmt.Errorf("%w: %w", errBind, wc[0].Err())
		default:
			return nil
		}
	}
}
