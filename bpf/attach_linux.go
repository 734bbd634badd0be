package bpf

import (
	"errors"

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
	return choose(mode, func(m Mode) (link.Link, error) {
		flags := link.XDPGenericMode
		if m == Native {
			flags = link.XDPDriverMode
		}
		l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: ifindex, Flags: flags})
		if err != nil {
			return nil, attachError(err, ifindex, dev, m)
		}
		return l, nil
	})
}

// release detaches a link that is there, and closes it. To close it alone detaches only with the
// last descriptor of it, and a process that was started just now has a copy of each until it
// executes its own program.
func release(l link.Link) error { return errors.Join(l.Detach(), l.Close()) }

// choose tries the mode asked for. Auto is Generic only where the driver has no native
// mode for the interface as it is.
func choose(mode Mode, try func(Mode) (link.Link, error)) (attached, error) {
	var nativeErr error
	if mode != Generic {
		l, err := try(Native)
		if err == nil {
			return attached{link: l, mode: Native}, nil
		}
		if mode == Native || !unsupported(err) {
			return attached{}, err
		}
		nativeErr = err
	}
	l, err := try(Generic)
	if err != nil {
		return attached{}, err
	}
	return attached{link: l, mode: Generic, nativeErr: nativeErr}, nil
}

// unsupported reports whether an error of attaching natively says that the driver does
// not do that, here and tomorrow: EOPNOTSUPP and EINVAL of dev_xdp_attach and of most
// drivers, ERANGE and ENOSPC of veth (kernel v6.18 net/core/dev.c, drivers/net/veth.c
// veth_xdp_set). Others pass, as a lack of memory or descriptors does: to take the slow
// mode for them would stay.
func unsupported(err error) bool {
	for _, errno := range []error{unix.EOPNOTSUPP, unix.EINVAL, unix.ERANGE, unix.ENOSPC} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
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
		return "the driver has no native XDP, or not with this MTU; use generic mode"
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
	case errors.Is(err, unix.ENOMEM) && mode == Native:
		return "no memory for it now, or the driver has too few queues for this many CPUs; " +
			"try again, or use generic mode"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return "raise the limit (ulimit -n)"
	case errors.Is(err, unix.ENODEV):
		return "the interface is gone from this network namespace"
	}
	return ""
}
