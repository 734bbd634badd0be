package vethpair

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// A lossCount is how many frames were lost in the middle.
type lossCount struct{ m *ebpf.Map }

// open makes the counter, where there is loss.
func (c *lossCount) open(o Options) (err error) {
	if o.LossPPM == 0 {
		return nil
	}
	c.m, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1,
	})
	if err != nil {
		return fmt.Errorf("make the counter of frames that are lost: %w", err)
	}
	return nil
}

// actShot is the verdict that drops a frame (kernel include/uapi/linux/pkt_cls.h).
const actShot = 2

// program begins that of the middle: it has the context in R6 and loses frames.
func (c *lossCount) program(o Options) asm.Instructions {
	p := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	if o.LossPPM == 0 {
		return p
	}
	share := int64(o.LossPPM) << 32 / 1e6
	return append(p,
		asm.FnGetPrandomU32.Call(),
		asm.LoadImm(asm.R1, share, asm.DWord),
		asm.JGE.Reg(asm.R0, asm.R1, "keep"),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, c.m.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "lose"),
		asm.Mov.Imm(asm.R1, 1),
		asm.StoreXAdd(asm.R0, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, actShot).WithSymbol("lose"),
		asm.Return(),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("keep"),
	)
}

// Lost is how many frames were lost because of Options.LossPPM, in both directions.
func (p *Pair) Lost() (n uint64, err error) {
	if p.lost.m == nil {
		return 0, nil
	}
	if err := p.lost.m.Lookup(uint32(0), &n); err != nil {
		return 0, fmt.Errorf("vethpair: frames lost: %w", err)
	}
	return n, nil
}

// close ends counting.
func (c *lossCount) close() {
	if c.m != nil {
		c.m.Close()
	}
}
