package vethpair

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// scatterQueue is the length of the pfifos in the middle in frames: what both ends may have on
// the way.
const scatterQueue = 10000

// middleNames are the interfaces in the middle.
var middleNames = [2]string{"s0", "s1"}

// linkScattered makes the wire of two veth pairs. In the middle a program at the ingress of each
// chooses the transmit queue of the other, which is the receive queue of the end:
//
//	namespace a        namespace s        namespace b
//	 xr0 ===== veth ===== s0  s1 ===== veth ===== xr0
//
// Nothing is lost there but what Options.LossPPM says, as long as no more is on its way than the
// kernel's backlog holds (net.core.netdev_max_backlog): the softirq that carries a frame over runs
// before the sender's next, or on a busy host later.
func (p *Pair) linkScattered(o Options) error {
	s := [2]End{{Name: middleNames[0], ns: p.middle.ns}, {Name: middleNames[1], ns: p.middle.ns}}
	if err := errors.Join(addVeth(&p.A, &s[0], o), addVeth(&p.B, &s[1], o)); err != nil {
		return err
	}
	inside := o
	inside.NoAddrs, inside.Threaded, inside.PfifoLimit = true, false, scatterQueue
	return p.Do(middle, func() error {
		for i := range s {
			if err := s[i].configure(inside); err != nil {
				return fmt.Errorf("middle: %w", err)
			}
		}
		if err := p.lost.open(o); err != nil {
			return err
		}
		for i := range s {
			if err := p.scatterTo(s[i].Ifindex, s[1-i].Ifindex, o); err != nil {
				return fmt.Errorf("middle: %w", err)
			}
		}
		return nil
	})
}

// queueMapping is the offset in struct __sk_buff (kernel include/uapi/linux/bpf.h).
const queueMapping = 12

// scatterTo sends what comes in on one interface out on another, on any transmit queue: a
// recorded receive queue, counted from 1, is what the kernel chooses the transmit queue by
// (net/core/dev.c skb_tx_hash).
func (p *Pair) scatterTo(from, to int, o Options) error {
	choose := asm.FnGetHashRecalc
	if o.Scatter == ScatterFrames {
		choose = asm.FnGetPrandomU32
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "scatter", Type: ebpf.SchedCLS, License: "Dual MIT/GPL",
		Instructions: append(p.lost.program(o), asm.Instructions{
			choose.Call(),
			asm.Mod.Imm32(asm.R0, int32(o.Queues)),
			asm.Add.Imm(asm.R0, 1),
			asm.StoreMem(asm.R6, queueMapping, asm.R0, asm.Word),
			asm.Mov.Imm(asm.R1, int32(to)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
		}...),
	})
	if err != nil {
		return fmt.Errorf("load the program that scatters: %w", err)
	}
	defer prog.Close()
	clsact := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: from, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
	if err := netlink.QdiscAdd(clsact); err != nil {
		return fmt.Errorf("add clsact: %w", err)
	}
	err = netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: from, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1,
			Protocol: unix.ETH_P_ALL,
		},
		Fd: prog.FD(), Name: "scatter", DirectAction: true,
	})
	if err != nil {
		return fmt.Errorf("add the filter that scatters: %w", err)
	}
	return nil
}
