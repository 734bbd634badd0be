package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"xroce/bpf"
	"xroce/engine/host"
	"xroce/xsk"
	"xroce/xsk/asavie"
)

// A steeredLink is a link whose frames an XDP program must redirect to it.
type steeredLink interface {
	xsk.Link
	// Sockets calls f for each queue with the descriptor of its socket, until f fails.
	Sockets(f func(queue, fd int) error) error
}

// Open makes a device of a network interface: it attaches the XDP program,
// opens an AF_XDP socket on each receive queue, and takes the RoCE packets that are
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
	if o.countQueues == nil {
		o.countQueues = host.ReceiveQueues
	}
	kernel, err := host.Open(iface)
	if err != nil {
		return nil, err
	}
	port := kernel.Port()
	if _, err := shareQueues(port, &o); err != nil {
		return nil, errors.Join(err, kernel.Close())
	}
	hasCarrier := func() (bool, error) { return host.HasCarrier(port.Index) }
	had, err := hasCarrier()
	if err != nil {
		return nil, errors.Join(err, kernel.Close())
	}
	program, err := attach(port, &o)
	if err != nil {
		return nil, errors.Join(err, kernel.Close())
	}
	// A driver may have more queues for an XDP program to send on, and receive on them, too:
	// virtio_net does (virtnet_xdp_set).
	shares, err := shareQueues(port, &o)
	if err != nil {
		err = fmt.Errorf("with the XDP program attached: %w", err)
		return nil, errors.Join(err, program.Close(), kernel.Close())
	}
	links, err := openLinks(kernel, program, shares, &o)
	if err != nil {
		return nil, errors.Join(err, program.Close(), kernel.Close())
	}
	if had {
		if err := awaitCarrier(hasCarrier, carrierTime); err != nil {
			o.Logger.Warn("nothing arrives yet", "device", port.Name, "error", err.Error())
		}
	}
	d, err := openDevice(links, kernel, program, o)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	if err := d.steerCard(shares[0][0]); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.logOpen(shares)
	d.logCard()
	return d, nil
}

// shareQueues asks the kernel for the receive queues of a port, and deals those that the options
// name out to the drivers.
func shareQueues(port host.Port, o *Options) ([][]int, error) {
	have, err := o.countQueues(port.Name)
	if err != nil {
		return nil, err
	}
	queues, err := o.takeQueues(port.Name, have)
	if err != nil {
		return nil, err
	}
	if o.Backend == BackendAsavie && len(queues) > 1 {
		return nil, fmt.Errorf("engine: backend %s drives one queue, and %s has %d: "+
			"ethtool -L %s combined 1", o.Backend, port.Name, len(queues), port.Name)
	}
	return divide(queues, o.Drivers)
}

// logOpen tells what was opened.
func (d *Device) logOpen(shares [][]int) {
	info, log, program := d.Link(), d.options.Logger, d.program
	if err := program.NativeErr(); err != nil {
		log.Warn("the XDP program runs in generic mode, which is slower: the driver has "+
			"no native one for this interface", "device", d.Name(), "error", err.Error())
	}
	if info.Limited != "" {
		log.Warn("there are fewer frames than by default, so bursts are lost sooner",
			"device", d.Name(), "transmit", info.TxFrames, "because", info.Limited)
	}
	queues := slices.Sorted(slices.Values(slices.Concat(shares...)))
	log.Info("device open", "device", d.Name(), "queues", numbers(queues),
		"drivers", len(d.drivers), "backend", info.Backend, "attach", program.Mode().String(),
		"zero-copy", info.ZeroCopy, "multi-buffer", info.MultiBuffer)
}

// attach loads the XDP program. The device tells it which addresses are ours.
func attach(port host.Port, o *Options) (*bpf.Program, error) {
	program, err := bpf.Attach(port.Index, bpf.Options{Mode: o.Attach})
	if err != nil {
		return nil, fmt.Errorf("engine: XDP program on %s: %w", port.Name, err)
	}
	return program, nil
}

// openLinks opens a link for each share of the queues.
func openLinks(kernel *host.Kernel, program *bpf.Program, shares [][]int, o *Options) (
	links []xsk.Link, err error,
) {
	for i, queues := range shares {
		s := &share{
			host: kernel, program: program, number: i, log: o.Logger,
			link: func(port host.Port, queues []int, bind time.Duration) (steeredLink, error) {
				return openLink(port, queues, o, program.Mode(), bind)
			},
			deal: func(port host.Port) ([][]int, error) {
				have, err := o.countQueues(port.Name)
				return o.dealAgain(have), err
			},
		}
		link, err := s.open(queues, xsk.DefaultBindTimeout)
		if err != nil {
			for _, link := range links {
				err = errors.Join(err, link.Close())
			}
			return nil, err
		}
		if o.Backend == BackendXSK { // the other never gives its queue back
			link = s.reopenable(link)
		}
		links = append(links, link)
	}
	return links, nil
}

// openLink opens the sockets of the chosen backend. Under a program in generic mode the driver
// would take frames for zero-copy that the program never gives it: that is not asked for.
func openLink(
	port host.Port, queues []int, o *Options, attached bpf.Mode, bind time.Duration,
) (steeredLink, error) {
	mode := o.Mode
	if attached == bpf.Generic {
		if mode == xsk.ModeZeroCopy {
			return nil, errGenericZeroCopy
		}
		mode = xsk.ModeCopy
	}
	if o.Backend == BackendAsavie {
		return asavie.Open(asavie.Config{Ifindex: port.Index, Queue: queues[0], Mode: mode})
	}
	c := xsk.Config{
		Ifindex: port.Index, Queue: queues[0], Mode: mode, FillTarget: minFillTarget,
		BusyPoll: int(o.BusyPoll.Microseconds()), BusyPollBudget: o.BusyPollBudget,
		Memory: o.Memory / int64(o.Drivers), HugePages: o.HugePages, BindTimeout: bind,
		SndBuf: sendBuffer, Dedicated: len(o.CPUs) > 0,
	}
	if len(queues) == 1 {
		return xsk.Open(c)
	}
	return xsk.OpenGroup(c, queues)
}

// errGenericZeroCopy says that what was asked for cannot be had together.
var errGenericZeroCopy = fmt.Errorf("zero-copy needs the XDP program in native mode, and it is in "+
	"generic mode: %w", errors.ErrUnsupported)

// sendBuffer is the SO_SNDBUF of the socket in bytes. In copy mode the kernel
// charges each frame in flight to it; the default holds some 80 large ones.
const sendBuffer = 8 << 20
