package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attached is the outcome of attaching.
type attached struct {
	link      link.Link
	mode      Mode
	nativeErr error // why the driver refused when mode is a fallback
}

// attach makes the link in the mode asked for. The link pins the program to
// the interface for as long as its file descriptor is open.
func attach(prog *ebpf.Program, ifindex int, dev device, mode Mode) (attached, error) {
	try := func(m Mode, flags link.XDPAttachFlags) (link.Link, error) {
		l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: ifindex, Flags: flags})
		if err != nil {
			return nil, attachError(err, ifindex, dev, m)
		}
		return l, nil
	}
	var nativeErr error
	if mode != Generic {
		l, err := try(Native, link.XDPDriverMode)
		if err == nil {
			return attached{link: l, mode: Native}, nil
		}
		if mode == Native || !mayFallBack(err) {
			return attached{}, err
		}
		nativeErr = err
	}
	l, err := try(Generic, link.XDPGenericMode)
	if err != nil {
		return attached{}, err
	}
	return attached{link: l, mode: Generic, nativeErr: nativeErr}, nil
}

// mayFallBack reports whether generic mode can work where native mode failed:
// not when somebody else is there, the device is gone or we are not allowed.
func mayFallBack(err error) bool {
	for _, errno := range []error{unix.EBUSY, unix.EEXIST, unix.EPERM, unix.ENODEV} {
		if errors.Is(err, errno) {
			return false
		}
	}
	return true
}

// attachError explains what BPF_LINK_CREATE came back with. The kernel's own
// words (extack) do not reach a caller of bpf(2).
func attachError(err error, ifindex int, dev device, mode Mode) error {
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		// Somebody was faster than our look at the device.
		if now, readErr := readDevice(ifindex); readErr == nil && now.progID != 0 {
			return foreignError(now)
		}
	}
	return &Error{
		Op:        "attach (" + mode.String() + ") to",
		Interface: dev.name,
		Err:       err,
		Hint:      attachHint(err, mode),
	}
}

// attachHint says what to do about an errno of attaching (kernel net/core/dev.c
// v6.18 dev_xdp_attach, drivers/net/veth.c veth_xdp_set).
func attachHint(err error, mode Mode) string {
	switch {
	case errors.Is(err, unix.EPERM):
		return permissionHint()
	case errors.Is(err, unix.EOPNOTSUPP) && mode == Native:
		return "the driver has no native XDP; use generic mode"
	case errors.Is(err, unix.ERANGE):
		return "the MTU of the veth peer is too large for XDP; lower it"
	case errors.Is(err, unix.ENOSPC):
		return "the veth peer has more transmit queues than this end has receive queues; " +
			"make them equal (ethtool -L), or use generic mode"
	case errors.Is(err, unix.EEXIST):
		return "an upper device such as a bond has an XDP program; attach there or detach it"
	case errors.Is(err, unix.EBUSY):
		return "another process is attaching a program; try again"
	case errors.Is(err, unix.EINVAL) && mode == Native:
		return "the driver refuses; often the MTU is too large for XDP, LRO is on, " +
			"or the driver knows no multi-buffer programs; use generic mode"
	case errors.Is(err, unix.ENODEV):
		return "the interface is gone from this network namespace"
	}
	return ""
}

// foreignError says who is in the way and how to get rid of it.
func foreignError(dev device) error {
	name := "of unknown name (reading it needs CAP_SYS_ADMIN)"
	if prog, err := ebpf.NewProgramFromID(ebpf.ProgramID(dev.progID)); err == nil {
		if info, err := prog.Info(); err == nil {
			name = fmt.Sprintf("%q", info.Name)
		}
		prog.Close()
	}
	return &Error{
		Op:        "attach to",
		Interface: dev.name,
		Err: fmt.Errorf("%w: program id %d %s: %w",
			ErrForeignProgram, dev.progID, name, unix.EBUSY),
		Hint: "stop the process that owns it, or, if none does, run: ip link set dev " +
			dev.name + " xdp off",
	}
}
