package trial

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A rig is two devices with one connection between them, for one message at a
// time over a network that does what a rule says.
type rig struct {
	t       *testing.T
	clock   *sim.VirtualClock
	network *sim.Network
	ends    [2]rigEnd
	sent    [2]int // frames of the message, by sender
	round   uint64
}

type rigEnd struct {
	device *engine.Device
	cq     *engine.CQ
	qp     *engine.QP
	mr     *engine.MR
	info   engine.Endpoint
}

// Memory of each end of a rig: a message, with canaries around it.
const (
	rigMTU  = 256
	rigSize = 16 * rigMTU
	rigArea = rigSize + 2*canary

	rigRights = mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic | mem.FlushGlobal
)

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: &sim.VirtualClock{}}
	var err error
	r.network, err = sim.NewNetwork(1, r.clock, sim.Faults{Delay: roce.Microsecond})
	r.must(err)
	r.network.Observe(func(ev *sim.Event) {
		if ev.Kind == sim.Sent {
			r.sent[campaign.NodeOf(ev.From)]++
		}
	})
	for i := range r.ends {
		r.open(i)
	}
	for i := range r.ends {
		e, p := &r.ends[i], &r.ends[1-i]
		r.must(e.qp.Connect(t.Context(), e.info, p.info, engine.ConnectOptions{
			SGIDIndex: 1, PathMTU: wire.MTU256, Timeout: 4, HopLimit: 64, RetryCnt: 7,
			RNRRetry: 7, MinRNRTimer: 1, MaxRdAtomic: 4, Exact: true,
		}))
	}
	return r
}

func (r *rig) open(i int) {
	e := &r.ends[i]
	port, err := r.network.NewPort(sim.PortConfig{
		MAC: campaign.MAC(i, 0), MTU: 1500,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})},
	})
	r.must(err)
	e.device, err = engine.OpenLink(port, port, engine.Options{
		Clock: r.clock, Direct: true, Rand: rand.NewPCG(1, uint64(i)),
	})
	r.must(err)
	r.t.Cleanup(func() { r.must(e.device.Close()) })
	e.cq, err = e.device.CreateCQ(16)
	r.must(err)
	pd := e.device.AllocPD()
	e.mr, err = e.device.RegMR(pd, make([]byte, rigArea),
		mem.LocalWrite|rigRights)
	r.must(err)
	e.qp, err = e.device.CreateQP(pd, engine.QPInit{SendCQ: e.cq, RecvCQ: e.cq})
	r.must(err)
	r.must(e.qp.Init(rigRights))
	e.info, err = e.device.Endpoint(e.qp, 1)
	r.must(err)
	e.info.PSN = 1<<24 - 5 // wraps inside of the first message
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// message sends one message from end 0 under the rules, and lets the network
// come to rest. It returns what is wrong: each end must see its completions
// once, and memory must be what was sent, canaries included.
func (r *rig) message(o *operation, size int, rules ...sim.Rule) error {
	r.must(r.network.SetRules(rules...))
	a, b := &r.ends[0], &r.ends[1]
	before := r.strikes()
	r.round++
	r.sent = [2]int{}
	from, to := a, b
	if o.gets {
		from, to = b, a
	}
	fill(from.mr.Bytes(), messageKey(1, 1, r.round))
	rest(to.mr.Bytes(), r.round)
	if o.fixed != 0 || o.bare {
		size = o.fixed
	}
	source, want := bytes.Clone(from.mr.Bytes()), bytes.Clone(to.mr.Bytes())
	copy(want[canary:canary+size], from.mr.Bytes()[canary:])
	need := [2]int{1, 0}
	if o.consumes {
		need[1] = 1
		r.must(b.qp.PostRecv(&roce.RecvWR{
			WRID: r.round, SGList: []roce.SGE{b.mr.SGE(canary, size)},
		}))
	}
	r.must(a.qp.PostSend(r.request(o, size, source[canary:canary+8])))
	var got [2][]roce.Completion
	err := r.network.Run(r.clock, r.clock.Now()+10*roce.Second, func() bool {
		for i := range r.ends {
			var wcs [4]roce.Completion
			n, err := r.ends[i].cq.Poll(wcs[:])
			r.must(err)
			got[i] = append(got[i], wcs[:n]...)
		}
		return false
	}, a.device, b.device)
	if !errors.Is(err, sim.ErrStuck) {
		return err
	}
	for i, list := range got {
		if len(list) != need[i] {
			return fmt.Errorf("end %d: %d completions, want %d", i, len(list), need[i])
		}
		for _, wc := range list {
			if wc.Status != roce.StatusSuccess || wc.WRID != r.round {
				return fmt.Errorf("end %d: %d of round %d: %s", i, wc.WRID, r.round, wc.Status)
			}
		}
	}
	if o.consumes && o.imm && got[1][0].Imm != uint32(r.round) {
		return fmt.Errorf("immediate %#x", got[1][0].Imm)
	}
	if !bytes.Equal(to.mr.Bytes(), want) || !bytes.Equal(from.mr.Bytes(), source) {
		return errors.New("memory differs")
	}
	if n := r.strikes() - before; len(rules) > 0 && n == 0 {
		return errors.New("no rule struck")
	}
	return nil
}

// request makes the work request of a message. What an atomic does to the word
// goes to the model of it.
func (r *rig) request(o *operation, size int, word []byte) *roce.SendWR {
	a, b := &r.ends[0], &r.ends[1]
	wr := &roce.SendWR{
		WRID: r.round, Opcode: o.code, Flags: roce.SendSignaled, Imm: uint32(r.round),
		SGList: []roce.SGE{a.mr.SGE(canary, size)}, RemoteAddr: b.mr.Addr() + canary,
		RKey: b.mr.RKey(),
	}
	old := binary.NativeEndian.Uint64(word)
	switch o.code {
	case roce.OpFetchAdd:
		wr.CompareAdd = r.round
		binary.NativeEndian.PutUint64(word, old+r.round)
	case roce.OpCmpSwap:
		wr.CompareAdd, wr.Swap = old, ^r.round
		binary.NativeEndian.PutUint64(word, ^r.round)
	case roce.OpFlush:
		wr.SGList, wr.Flush, wr.FlushLength = nil, wire.FlushGlobal, rigSize
	}
	return wr
}

// strikes counts what rules did so far.
func (r *rig) strikes() uint64 {
	c := r.network.Counts()
	return c.Scripted + c.ScriptedCorrupted + c.Duplicated + c.Reordered
}

// cells are the operations of the cells: READ_BACK, READ_WORD and WRITE_TICKET
// are others on the wire, SEND_INV needs another key each time, and BIND_MW and
// LOCAL_INV send nothing.
func cells() (list []*operation) {
	for i := range operations {
		switch operations[i].name {
		case "READ_BACK", "READ_WORD", "WRITE_TICKET", "SEND_INV", "BIND_MW", "LOCAL_INV":
		default:
			list = append(list, &operations[i])
		}
	}
	return list
}

// clean runs a message without faults and returns how many frames each end
// sends.
func (r *rig) clean(o *operation, size int) [2]int {
	r.t.Helper()
	if err := r.message(o, size); err != nil {
		r.t.Fatalf("%s without faults: %v", o.name, err)
	}
	return r.sent
}

// fromEnd is a rule about the n-th frame that an end sends.
func fromEnd(end, n int) sim.Rule { return sim.Rule{From: campaign.MAC(end, 0), Nth: n} }

// TestEachPacketLost loses each packet of a message of 16 packets alone, and
// each answer.
func TestEachPacketLost(t *testing.T) {
	r := newRig(t)
	for _, o := range cells() {
		sent := r.clean(o, rigSize)
		for end, frames := range sent {
			for n := 1; n <= frames; n++ {
				if err := r.message(o, rigSize, fromEnd(end, n)); err != nil {
					t.Fatalf("%s: frame %d of end %d lost: %v", o.name, n, end, err)
				}
			}
		}
	}
}

// TestEachPairLost loses each pair of packets, those of the first try and those
// sent again, of either end.
func TestEachPairLost(t *testing.T) {
	r := newRig(t)
	for _, o := range cells() {
		sent := r.clean(o, rigSize)
		data := 0
		if o.gets {
			data = 1
		}
		for i := 1; i <= sent[data]; i++ {
			for j := i + 1; j <= 2*sent[data]+2; j++ {
				err := r.message(o, rigSize, fromEnd(data, i), fromEnd(data, j))
				if err != nil {
					t.Fatalf("%s: frames %d and %d lost: %v", o.name, i, j, err)
				}
			}
			// The NAK, the ACK, or the request that is repeated.
			for j := 1; j <= 3; j++ {
				err := r.message(o, rigSize, fromEnd(data, i), fromEnd(1-data, j))
				if err != nil {
					t.Fatalf("%s: frame %d and answer %d lost: %v", o.name, i, j, err)
				}
			}
		}
	}
}

// TestRepeatedLosses loses a packet, what is sent again for it, and that again.
func TestRepeatedLosses(t *testing.T) {
	r := newRig(t)
	for _, o := range cells() {
		sent := r.clean(o, rigSize)
		for end, frames := range sent {
			for n := 1; n <= frames; n++ {
				for times := 2; times <= 6; times++ {
					rule := fromEnd(end, n)
					rule.Times = times
					if err := r.message(o, rigSize, rule); err != nil {
						t.Fatalf("%s: frames %d to %d of end %d lost: %v", o.name, n, n+times-1,
							end, err)
					}
				}
			}
		}
	}
}

// TestEachPacketTwice repeats each packet, at once and so late that the message
// is long complete, and lets each be overtaken.
func TestEachPacketTwice(t *testing.T) {
	r := newRig(t)
	for _, o := range cells() {
		sent := r.clean(o, rigSize)
		for end, frames := range sent {
			for n := 1; n <= frames; n++ {
				for _, change := range []sim.Rule{
					{Copies: 1},
					{Copies: 3},
					{Delay: roce.Microsecond / 2},
					{Delay: 5 * roce.Microsecond},
					{Delay: roce.Millisecond},
					{Copies: 1, Delay: roce.Millisecond},
				} {
					rule := change
					rule.From, rule.Nth = campaign.MAC(end, 0), n
					if err := r.message(o, rigSize, rule); err != nil {
						t.Fatalf("%s: frame %d of end %d, %+v: %v", o.name, n, end, change, err)
					}
				}
			}
		}
	}
}

// TestEachBit flips each bit of a packet of each opcode in use, from the first header to the ICRC.
// Nothing wrong may be delivered, nor may anything end.
func TestEachBit(t *testing.T) {
	const network = 14 + 20 + 8
	r := newRig(t)
	seen := map[wire.Opcode]bool{}
	for _, o := range cells() {
		for _, size := range []int{40, 3 * rigMTU} {
			for op, frame := range framesOf(r, o, size) {
				if seen[op] {
					continue
				}
				seen[op] = true
				headers := network + wire.BTHLen + int(op.Spec().HeaderLen) + wire.ICRCLen
				if frame < headers || op.Spec().Payload != wire.PayloadNone && frame == headers {
					t.Fatalf("%s: a frame of %d bytes", op, frame)
				}
				for bit := 1; bit <= 8*frame; bit++ {
					err := r.message(o, size, sim.Rule{
						Opcodes: []wire.Opcode{op}, Nth: 1, Flip: bit,
					})
					if err != nil {
						t.Fatalf("%s: %s: bit %d of byte %d: %v", o.name, op, (bit-1)%8,
							(bit-1)/8, err)
					}
				}
			}
		}
	}
	if len(seen) != 23 {
		t.Errorf("%d opcodes were seen: %v", len(seen), seen)
	}
}

// framesOf returns the opcodes on the wire of an operation, and how long the first frame of each
// is in bytes.
func framesOf(r *rig, o *operation, size int) map[wire.Opcode]int {
	list := map[wire.Opcode]int{}
	r.network.Observe(func(ev *sim.Event) {
		f := campaign.ReadFrame(ev)
		if _, seen := list[f.Opcode]; ev.Kind == sim.Sent && !seen {
			list[f.Opcode] = len(ev.Frame)
		}
	})
	r.clean(o, size)
	r.network.Observe(nil)
	return list
}
