package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// A Collector is an XDP program on an interface that hands the frames of a Filter to AF_XDP
// sockets, for measuring: it knows ports and EtherTypes, not addresses. It leaves the
// interface at Close or when the process ends.
type Collector struct {
	name  string
	at    attached
	prog  *ebpf.Program
	socks *ebpf.Map
}

// Collect attaches a Collector to an interface of the calling thread's network namespace. All
// passes to the kernel until a socket is registered. Errors are those of Attach.
func Collect(ifindex int, f Filter, opts Options) (*Collector, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	dev, queues, err := prepare(ifindex, opts)
	if err != nil {
		return nil, err
	}
	c := &Collector{name: dev.name}
	if err := c.load(f, queues); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if c.at, err = attach(c.prog, ifindex, dev, opts.Mode); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// load makes the map and loads the program.
func (c *Collector) load(f Filter, queues int) (err error) {
	c.socks, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "collect", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(queues),
	})
	if err != nil {
		return loadError(err)
	}
	c.prog, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "collect", Type: ebpf.XDP, Instructions: f.program(c.socks.FD()),
		License: "Dual MIT/GPL", Flags: unix.BPF_F_XDP_HAS_FRAGS,
	})
	return loadError(err)
}

// Mode is Native or Generic: where the program runs.
func (c *Collector) Mode() Mode { return c.at.mode }

// NativeErr says why a Collector in mode Auto fell back to Generic; nil when it did not.
func (c *Collector) NativeErr() error { return c.at.nativeErr }

// Register makes the program send the frames of a receive queue to an AF_XDP socket, as
// Program.Register does.
func (c *Collector) Register(queue, fd int) error {
	if queue < 0 || queue >= int(c.socks.MaxEntries()) {
		return fmt.Errorf("bpf: queue %d of %s, expected 0 to %d", queue, c.name,
			c.socks.MaxEntries()-1)
	}
	if err := c.socks.Put(uint32(queue), uint32(fd)); err != nil {
		return &Error{
			Op: fmt.Sprintf("register a socket for queue %d of", queue), Interface: c.name,
			Err: err,
		}
	}
	return nil
}

// Close detaches the program and gives it back. It is idempotent.
func (c *Collector) Close() error {
	var errs []error
	if c.at.link != nil {
		errs = append(errs, release(c.at.link))
		c.at.link = nil
	}
	if c.prog != nil {
		errs = append(errs, c.prog.Close())
	}
	if c.socks != nil {
		errs = append(errs, c.socks.Close())
	}
	return errors.Join(errs...)
}

// Registers of the program: the context, the frame from where the headers are counted, its end,
// and a value that was read from it.
const (
	regContext = asm.R6
	regFrame   = asm.R7
	regEnd     = asm.R8
	regValue   = asm.R5
)

// Offsets in struct xdp_md (kernel include/uapi/linux/bpf.h), and a verdict.
const (
	mdData    = 0
	mdDataEnd = 4
	mdQueue   = 16
	xdpPass   = 2
)

// Offsets from the begin of the frame without its tags.
const (
	offType      = 12
	offIPv4      = 14
	offFragment  = offIPv4 + 6
	offProtoIPv4 = offIPv4 + 9
	offProtoIPv6 = 14 + 6
	offPortIPv4  = offIPv4 + 20 + 2
	offPortIPv6  = 14 + 40 + 2
	udpHeader    = 8
	protoUDP     = 17
)

// big is a number of two bytes as the program reads it from a frame.
func big(n uint16) int32 {
	return int32(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n)))
}

// need goes on only when the frame has so many bytes.
func need(bytes int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R4, regFrame),
		asm.Add.Imm(asm.R4, bytes),
		asm.JGT.Reg(asm.R4, regEnd, "pass"),
	}
}

// program is the filter as instructions.
func (f Filter) program(socks int) asm.Instructions {
	p := asm.Instructions{
		asm.Mov.Reg(regContext, asm.R1),
		asm.LoadMem(regFrame, asm.R1, mdData, asm.Word),
		asm.LoadMem(regEnd, asm.R1, mdDataEnd, asm.Word),
	}
	load := func(off int16, size asm.Size) {
		p = append(p, asm.LoadMem(regValue, regFrame, off, size))
	}
	p = append(p, need(offIPv4)...)
	load(offType, asm.Half)
	for _, tag := range [...]string{"tag", "second tag"} {
		p = append(p,
			asm.JEq.Imm(regValue, big(etherVLAN), tag),
			asm.JNE.Imm(regValue, big(etherQinQ), "type"),
			asm.Add.Imm(regFrame, 4).WithSymbol(tag))
		p = append(p, need(offIPv4)...)
		load(offType, asm.Half)
	}
	p = append(p,
		asm.JEq.Imm(regValue, big(etherIPv4), "ipv4").WithSymbol("type"),
		asm.JEq.Imm(regValue, big(etherIPv6), "ipv6"))
	for _, t := range f.EtherTypes {
		p = append(p, asm.JEq.Imm(regValue, big(t), "take"))
	}
	p = append(p, asm.Ja.Label("pass"))

	v4 := need(offPortIPv4 - 2 + udpHeader)
	v4[0] = v4[0].WithSymbol("ipv4")
	p = append(p, v4...)
	load(offIPv4, asm.Byte)
	p = append(p, asm.JNE.Imm(regValue, 0x45, "pass"))
	load(offFragment, asm.Half)
	p = append(p, asm.And.Imm(regValue, big(0x3fff)), asm.JNE.Imm(regValue, 0, "pass"))
	load(offProtoIPv4, asm.Byte)
	p = append(p, asm.JNE.Imm(regValue, protoUDP, "pass"))
	load(offPortIPv4, asm.Half)
	p = append(p, asm.Ja.Label("port"))

	v6 := need(offPortIPv6 - 2 + udpHeader)
	v6[0] = v6[0].WithSymbol("ipv6")
	p = append(p, v6...)
	load(offProtoIPv6, asm.Byte)
	p = append(p, asm.JNE.Imm(regValue, protoUDP, "pass"))
	load(offPortIPv6, asm.Half)

	port := asm.Instructions{asm.Ja.Label("pass")}
	for _, n := range f.UDPPorts {
		port = append(asm.Instructions{asm.JEq.Imm(regValue, big(n), "take")}, port...)
	}
	port[0] = port[0].WithSymbol("port")
	p = append(p, port...)
	return append(p,
		asm.LoadMem(asm.R2, regContext, mdQueue, asm.Word).WithSymbol("take"),
		asm.LoadMapPtr(asm.R1, socks),
		asm.Mov.Imm(asm.R3, xdpPass),
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return(),
	)
}
