package vethpair

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync/atomic"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"xroce/xsk/deepstack"
)

// number tells the pairs of one process apart.
var number atomic.Uint32

// New makes a pair, up and with addresses. Nothing is left of a failed try.
func New(o Options) (*Pair, error) {
	o.setDefaults()
	n := number.Add(1)
	p := &Pair{}
	for side := range middle + 1 {
		e := p.End(side)
		e.ns = netns.None()
		e.Namespace = name(os.Getpid(), n, side)
		e.Name = IfName
		e.address(n, side, o)
	}
	if err := p.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("vethpair: %w", err), p.Close())
	}
	return p, nil
}

// AddWire joins the namespaces by one more wire, up and with addresses of its own, and returns its
// ends, A and B: interfaces xr1 in both namespaces, xr2 the next time, and so on. They go with the
// pair. Of a failed try an interface may be left until then.
func (p *Pair) AddWire(o Options) (ends [2]End, err error) {
	o.setDefaults()
	o.Scatter, o.LossPPM = ScatterNone, 0 // the middle is that of the first wire
	n := number.Add(1)
	w := &Pair{}
	ifName := fmt.Sprint("xr", p.further.Add(1))
	for side := range Side(2) {
		e := w.End(side)
		e.Namespace, e.ns, e.Name = p.End(side).Namespace, p.End(side).ns, ifName
		e.address(n, side, o)
	}
	if err := w.join(o); err != nil {
		return ends, fmt.Errorf("vethpair: %w", err)
	}
	return [2]End{w.A, w.B}, nil
}

// setDefaults fills in what is zero.
func (o *Options) setDefaults() {
	if o.MTU == 0 {
		o.MTU = DefaultMTU
	}
	if o.Queues == 0 {
		o.Queues = DefaultQueues
	}
	if o.PfifoLimit == 0 {
		o.PfifoLimit = DefaultPfifoLimit
	}
	if o.LossPPM > 0 && o.Scatter == ScatterNone {
		o.Scatter = ScatterFlows
	}
}

// address gives an end of a wire the addresses that follow from the number of that.
func (e *End) address(n uint32, side Side, o Options) {
	if o.NoAddrs || side == middle {
		return
	}
	v4 := netip.AddrFrom4([4]byte{10, 200 + byte(n>>8)%50, byte(n), 1 + byte(side)})
	v6 := netip.AddrFrom16([16]byte{
		0: 0xfd, 5: byte(n >> 8), 6: byte(n), 15: 1 + byte(side),
	})
	e.IPv4, e.IPv6 = netip.PrefixFrom(v4, 24), netip.PrefixFrom(v6, 64)
}

// build makes the namespaces and what is in them.
func (p *Pair) build(o Options) error {
	for side := range Side(2) {
		if err := p.End(side).makeNamespace(); err != nil {
			return err
		}
	}
	if o.Scatter != ScatterNone {
		if err := p.middle.makeNamespace(); err != nil {
			return err
		}
	}
	return p.join(o)
}

// join makes a wire between the namespaces.
func (p *Pair) join(o Options) error {
	connect := p.link
	if o.Scatter != ScatterNone {
		connect = p.linkScattered
	}
	if err := connect(o); err != nil {
		return err
	}
	for side := range Side(2) {
		e := p.End(side)
		if err := p.Do(side, func() error { return e.configure(o) }); err != nil {
			return fmt.Errorf("end %v: %w", side, err)
		}
	}
	for side := range Side(2) {
		if err := p.Do(side, p.End(side).await); err != nil {
			return fmt.Errorf("end %v: %w", side, err)
		}
	}
	if o.Scatter != ScatterNone {
		return p.Do(middle, func() error { return AwaitOperational(middleNames[:]...) })
	}
	return nil
}

// await waits until an end sends, and is found. It runs inside the end's namespace.
func (e *End) await() error {
	if err := AwaitOperational(e.Name); err != nil || !e.IPv6.IsValid() {
		return err
	}
	return awaitSolicited(e.Name, e.IPv6.Addr())
}

// makeNamespace makes the named namespace, on a thread of its own that comes
// back to where it was.
func (e *End) makeNamespace() error {
	if err := shareDir(namespaces); err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		old, err := netns.Get()
		if err != nil {
			done <- err
			return // still locked: the thread ends with the goroutine
		}
		defer old.Close()
		e.ns, err = netns.NewNamed(e.Namespace)
		if err != nil {
			err = fmt.Errorf("make namespace %s: %w", e.Namespace, err)
		}
		if netns.Set(old) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// link makes the veth pair.
func (p *Pair) link(o Options) error { return addVeth(&p.A, &p.B, o) }

// addVeth makes a veth pair.
func addVeth(a, b *End, o Options) error {
	h, err := netlink.NewHandleAt(a.ns)
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = a.Name
	attrs.MTU = o.MTU
	attrs.TxQLen = o.PfifoLimit
	attrs.NumRxQueues, attrs.NumTxQueues = o.Queues, o.Queues
	veth := netlink.NewVeth(attrs)
	veth.PeerName = b.Name
	veth.PeerNamespace = netlink.NsFd(int(b.ns))
	veth.PeerMTU = uint32(o.MTU)
	veth.PeerTxQLen = o.PfifoLimit
	veth.PeerNumRxQueues, veth.PeerNumTxQueues = uint32(o.Queues), uint32(o.Queues)
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	return nil
}

// configure sets up one end. It runs inside the end's namespace.
func (e *End) configure(o Options) error {
	l, err := netlink.LinkByName(e.Name)
	if err != nil {
		return err
	}
	e.Ifindex, e.MAC = l.Attrs().Index, l.Attrs().HardwareAddr
	if err := e.sysctls(o); err != nil {
		return err
	}
	if err := e.offloads(o); err != nil {
		return fmt.Errorf("set offloads: %w", err)
	}
	if !o.NoQdisc {
		// Without options the limit is the device's queue length, set above.
		q := &netlink.GenericQdisc{QdiscType: "pfifo", QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: e.Ifindex,
			Handle:    netlink.MakeHandle(1, 0),
			Parent:    netlink.HANDLE_ROOT,
		}}
		if err := netlink.QdiscAdd(q); err != nil {
			return fmt.Errorf("add pfifo: %w", err)
		}
	}
	if lo, err := netlink.LinkByName("lo"); err != nil {
		return err
	} else if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	for _, prefix := range []netip.Prefix{e.IPv4, e.IPv6} {
		if !prefix.IsValid() {
			continue
		}
		addr := &netlink.Addr{
			IPNet: &net.IPNet{
				IP:   prefix.Addr().AsSlice(),
				Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
			},
			Flags: unix.IFA_F_NODAD, // usable at once
		}
		if err := netlink.AddrAdd(l, addr); err != nil {
			return fmt.Errorf("add address %v: %w", prefix, err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	if o.Threaded {
		return e.setThreaded()
	}
	return nil
}

// sysctls keeps the kernel from sending of its own accord. The path is that of
// the thread's namespace.
func (e *End) sysctls(o Options) error {
	set := map[string]string{"accept_dad": "0", "router_solicitations": "0", "autoconf": "0"}
	if o.NoAddrs {
		set = map[string]string{"disable_ipv6": "1"}
	}
	for key, value := range set {
		path := "/proc/sys/net/ipv6/conf/" + e.Name + "/" + key
		err := os.WriteFile(path, []byte(value), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return err
		}
	}
	return nil
}

// offloads turns checksum offload off, and GRO on when NAPI has to exist before
// an XDP program is attached.
func (e *End) offloads(o Options) error {
	et, err := ethtool.NewEthtool()
	if err != nil {
		return err
	}
	defer et.Close()
	deepstack.Deepen()
	return et.Change(e.Name, map[string]bool{
		"tx-checksum-ip-generic": false,
		"tx-checksum-sctp":       false,
		"rx-gro":                 o.Threaded,
	})
}

// Do runs f on this goroutine with its thread inside the namespace of one end,
// and returns f's error. Goroutines that f starts run outside; sockets that f
// opens stay inside.
func (p *Pair) Do(s Side, f func() error) error {
	runtime.LockOSThread()
	old, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("vethpair: %w", err)
	}
	defer old.Close()
	if err := netns.Set(p.End(s).ns); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("vethpair: enter %s: %w", p.End(s).Namespace, err)
	}
	defer func() {
		// A thread that cannot come back stays locked and ends with the goroutine.
		if netns.Set(old) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// Close removes the interfaces and the namespaces. It is idempotent. The wire
// goes first: an open socket keeps a namespace alive, and with it what is inside.
func (p *Pair) Close() error {
	p.once.Do(func() {
		if p.A.ns.IsOpen() {
			p.err = p.A.cut()
		}
		if p.middle.ns.IsOpen() && p.B.ns.IsOpen() {
			p.err = errors.Join(p.err, p.B.cut())
		}
		p.lost.close()
		for side := range middle + 1 {
			e := p.End(side)
			if !e.ns.IsOpen() {
				continue
			}
			p.err = errors.Join(p.err, Remove(e.Namespace), e.ns.Close())
		}
	})
	return p.err
}

// cut deletes the wire of an end. One that was never made, or is gone, is fine.
func (e *End) cut() error {
	h, err := netlink.NewHandleAt(e.ns)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByName(e.Name)
	if err != nil {
		var none netlink.LinkNotFoundError
		if errors.As(err, &none) {
			return nil
		}
		return err
	}
	return drop(h, l)
}

// drop deletes a wire. The kernel may be quicker, which takes a namespace away some time after
// the last has let go of it, and with it both ends of each wire that ended there.
func drop(h *netlink.Handle, l netlink.Link) error {
	if err := h.LinkDel(l); !errors.Is(err, unix.ENODEV) {
		return err
	}
	return nil
}
