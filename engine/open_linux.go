package engine

import (
	"errors"
	"fmt"

	"xroce/bpf"
	"xroce/engine/host"
	"xroce/xsk"
	"xroce/xsk/asavie"
)

// A steeredLink is a link whose frames an XDP program must redirect to it.
type steeredLink interface {
	xsk.Link
	FD() int
}

// Open makes a device of a network interface: it attaches the XDP program,
// opens an AF_XDP socket on one queue, and takes the RoCE packets that are
// addressed to the interface. Everything else still goes to the kernel. It must
// run in the network namespace of the interface; what it returns may be used
// anywhere. The error wraps fs.ErrNotExist when there is no such interface.
//
// It needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and CAP_IPC_LOCK where the
// locked-memory limit is small.
func Open(iface string, o Options) (*Device, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.setDefaults()
	kernel, err := host.Open(iface)
	if err != nil {
		return nil, err
	}
	port := kernel.Port()
	program, err := attach(port, &o)
	if err != nil {
		return nil, errors.Join(err, kernel.Close())
	}
	link, err := openLink(port, &o)
	if err != nil {
		return nil, errors.Join(err, program.Close(), kernel.Close())
	}
	// The program sends nothing here until the socket is registered.
	if err := program.Register(o.Queue, link.FD()); err != nil {
		return nil, errors.Join(err, link.Close(), program.Close(), kernel.Close())
	}
	d, err := openDevice([]xsk.Link{link}, kernel, program, o)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	info := link.Info()
	if err := program.NativeErr(); err != nil {
		o.Logger.Warn("the XDP program runs in generic mode, which is slower: the driver has "+
			"no native one for this interface", "device", port.Name, "error", err.Error())
	}
	if info.Limited != "" {
		o.Logger.Warn("there are fewer frames than by default, so bursts are lost sooner",
			"device", port.Name, "transmit", info.TxFrames, "because", info.Limited)
	}
	o.Logger.Info("device open", "device", port.Name, "queue", o.Queue,
		"backend", info.Backend, "attach", program.Mode().String(),
		"zero-copy", info.ZeroCopy, "multi-buffer", info.MultiBuffer)
	return d, nil
}

// attach loads the XDP program. The device tells it which addresses are ours.
func attach(port host.Port, o *Options) (*bpf.Program, error) {
	program, err := bpf.Attach(port.Index, bpf.Options{Mode: o.Attach})
	if err != nil {
		return nil, fmt.Errorf("engine: XDP program on %s: %w", port.Name, err)
	}
	return program, nil
}

// openLink opens the socket of the chosen backend.
func openLink(port host.Port, o *Options) (steeredLink, error) {
	if o.Backend == BackendAsavie {
		link, err := asavie.Open(asavie.Config{
			Ifindex: port.Index, Queue: o.Queue, Mode: o.Mode,
		})
		if err != nil {
			return nil, fmt.Errorf("engine: %s: %w", port.Name, err)
		}
		return link, nil
	}
	link, err := xsk.Open(xsk.Config{
		Ifindex: port.Index, Queue: o.Queue, Mode: o.Mode, FillTarget: minFillTarget,
		BusyPoll: int(o.BusyPoll.Microseconds()),
		SndBuf:   sendBuffer, Dedicated: o.CPU > 0,
	})
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", port.Name, err)
	}
	return link, nil
}

// sendBuffer is the SO_SNDBUF of the socket in bytes. In copy mode the kernel
// charges each frame in flight to it; the default holds some 80 large ones.
const sendBuffer = 8 << 20
