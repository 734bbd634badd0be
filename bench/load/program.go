package load

import (
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// XDP verdicts (kernel include/uapi/linux/bpf.h).
const (
	xdpDrop = 1
	xdpPass = 2
)

// rxQueueIndex is the offset of that field in struct xdp_md.
const rxQueueIndex = 16

// A program is an XDP program on an interface, with its map. It leaves the
// interface when it is closed or the process ends.
type program struct {
	table *ebpf.Map
	prog  *ebpf.Program
	link  link.Link
}

// redirectAll hands every frame that arrives on the queue to the socket fd. It is
// the program that the C peer loads too.
func redirectAll(ifname string, queue, fd int) (*program, error) {
	p, err := attach(ifname, ebpf.MapSpec{
		Name: "xsks", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queue) + 1,
	}, func(table int) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, rxQueueIndex, asm.Word),
			asm.LoadMapPtr(asm.R1, table),
			asm.Mov.Imm(asm.R3, xdpPass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		}
	})
	if err != nil {
		return nil, err
	}
	if err := p.table.Put(uint32(queue), uint32(fd)); err != nil {
		p.Close()
		return nil, fmt.Errorf("load: fill the XSKMAP: %w", err)
	}
	return p, nil
}

// countAndDrop counts the frames that arrive and drops them: the cheapest reader
// there is, which never loses one that came so far.
func countAndDrop(ifname string) (*program, error) {
	return attach(ifname, ebpf.MapSpec{
		Name: "frames", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: 1,
	}, func(table int) asm.Instructions {
		return asm.Instructions{
			asm.StoreImm(asm.RFP, -4, 0, asm.Word),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -4),
			asm.LoadMapPtr(asm.R1, table),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "drop"),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
			asm.Return(),
		}
	})
}

// passAll lets every frame pass to the kernel. It has a map only because every
// program here has one.
func passAll(ifname string) (*program, error) {
	return attach(ifname, ebpf.MapSpec{
		Name: "pass", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1,
	}, func(int) asm.Instructions {
		return asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()}
	})
}

// attach loads a program around a map and puts it on an interface, in native
// mode and with BPF_F_XDP_HAS_FRAGS, so that frames of several buffers pass.
func attach(ifname string, table ebpf.MapSpec, code func(table int) asm.Instructions) (
	_ *program, err error,
) {
	p := &program{}
	defer func() {
		if err != nil {
			p.Close()
			err = fmt.Errorf("load: XDP program on %s: %w", ifname, err)
		}
	}()
	// Kernels before 5.11 count maps against the limit; a refusal shows below.
	_ = rlimit.RemoveMemlock()
	nic, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, err
	}
	if p.table, err = ebpf.NewMap(&table); err != nil {
		return nil, err
	}
	p.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: table.Name, Type: ebpf.XDP, Instructions: code(p.table.FD()),
		License: "Apache-2.0", Flags: unix.BPF_F_XDP_HAS_FRAGS,
	})
	if err != nil {
		return nil, err
	}
	p.link, err = link.AttachXDP(link.XDPOptions{
		Program: p.prog, Interface: nic.Index, Flags: link.XDPDriverMode,
	})
	return p, err
}

// count reads the frames that countAndDrop saw.
func (p *program) count() (uint64, error) {
	var perCPU []uint64
	if err := p.table.Lookup(uint32(0), &perCPU); err != nil {
		return 0, fmt.Errorf("load: read the frame count: %w", err)
	}
	var sum uint64
	for _, n := range perCPU {
		sum += n
	}
	return sum, nil
}

// Close takes the program off the interface.
func (p *program) Close() {
	// Nothing here can fail in a way that the end of the process does not mend.
	if p.link != nil {
		_ = p.link.Close()
	}
	if p.prog != nil {
		_ = p.prog.Close()
	}
	if p.table != nil {
		_ = p.table.Close()
	}
}
