package traffic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"xroce/bpf"
	"xroce/bpf/live"
	"xroce/engine/host"
	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk"
)

// sendBuffer is the SO_SNDBUF of the socket in bytes, to which the kernel charges what is under
// way in copy mode.
const sendBuffer = 8 << 20

// fewFrames are the receive frames of a socket that receives nothing, and those to send of a sink,
// which sends its answers.
const fewFrames = 64

// A SendPort is an interface to send from, and where answers come to.
type SendPort struct {
	Name  string
	Link  xsk.Link
	Links []xsk.Link // of all queues, the first is Link
	Route Route
	conn  *net.UDPConn // nil where nobody can answer
	heard bool         // a sink has answered, now or before

	program *bpf.Collector // nil when it receives nothing
	wayOut
}

// OpenSender opens a queue of an interface to send to a host, or a MAC address. The kernel's
// routes and neighbours say how to get there. No XDP program is attached: what arrives on the
// interface goes on to the kernel.
func OpenSender(ctx context.Context, o PortOptions, to string) (_ *SendPort, err error) {
	kernel, err := host.Open(o.Interface)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kernel.Close()) }()
	port := kernel.Port()
	p := &SendPort{Name: port.Name}
	p.Route.Path.SrcMAC = port.MAC
	if mac, macErr := net.ParseMAC(to); macErr == nil && len(mac) == 6 {
		p.Route.Path.DstMAC = [6]byte(mac)
	} else if err := p.resolve(ctx, kernel, to); err != nil {
		return nil, err
	}
	if err := p.open(o, port.Index); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Route.MaxFrame = p.Link.Info().MaxFrame
	if err := p.enliven(o, port.Index); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// enliven has the frames of all links leave as live frames, if that was asked for.
func (p *SendPort) enliven(o PortOptions, ifindex int) error {
	if o.Transmit == BySocket {
		return nil
	}
	p.told = o.Fell
	if err := p.spare(); err != nil {
		if o.Transmit == ByXDP {
			return err
		}
		p.fell(err)
		return nil
	}
	lives := make([]xsk.Link, 0, len(p.Links))
	for _, l := range p.Links {
		t, err := live.Open(ifindex, p.Route.MaxFrame)
		switch {
		case err == nil:
			lives = append(lives, &liveLink{
				Link: l, live: t, only: o.Transmit == ByXDP, fell: p.fell,
			})
			continue
		case o.Transmit == ByEither && len(lives) == 0:
			p.fell(err)
			return nil
		}
		copy(p.Links, lives) // so that they are closed
		return err
	}
	p.Links, p.Link, p.way = lives, lives[0], ByXDP
	return nil
}

// spare says why there is too little memory for live frames on all links: the kernel takes it
// without a word, and then kills who has too much.
func (p *SendPort) spare() error {
	need := int64(len(p.Links)) * int64(live.Bytes(p.Route.MaxFrame))
	if err := xsk.Linux().MemoryLimits().Spare(need); err != nil {
		return fmt.Errorf("live frames of %d queues need %d KiB, and %w", len(p.Links), need>>10,
			err)
	}
	return nil
}

// open opens the socket, and has it receive what is to be received. Frames that are not counted
// here are as many as there should be, or as there is memory for.
func (p *SendPort) open(o PortOptions, ifindex int) (err error) {
	c := xsk.Config{
		Interface: o.Interface, Queue: max(0, o.Queue), Mode: o.Mode, SndBuf: sendBuffer,
	}
	if !o.Answers {
		c.RxFrames, c.Sockets = fewFrames, max(1, o.Queues)
		p.Links, err = openQueues(c, c.Sockets, openSocket)
		if err == nil {
			p.Link = p.Links[0]
		}
		return err
	}
	p.program, err = bpf.Collect(ifindex, bpf.Filter{
		UDPPorts: []uint16{wire.UDPPort}, EtherTypes: o.Types,
	}, bpf.Options{Mode: o.Attach})
	if err != nil {
		return err
	}
	p.Link, err = collectFrom(p.program, c, c.Queue, true)
	if err == nil {
		p.Links = []xsk.Link{p.Link}
	}
	return err
}

// openSocket is xsk.Open.
func openSocket(c xsk.Config) (xsk.Link, error) {
	s, err := xsk.Open(c)
	if err != nil {
		return nil, err // and no link that is a nil pointer
	}
	return s, nil
}

// openQueues opens so many queues to send on. With an error those that are returned are open.
func openQueues(
	c xsk.Config, queues int, open func(xsk.Config) (xsk.Link, error),
) (links []xsk.Link, err error) {
	for range queues {
		link, err := open(c)
		if (errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM)) && c.TxFrames != 0 {
			// Others have taken some meanwhile: then this one has as many as there is room for.
			c.TxFrames, c.Sockets = 0, queues
			link, err = open(c)
		}
		if err != nil {
			return links, err
		}
		links = append(links, link)
		c.Queue++
		// The next have as many frames as this one, which has taken its part of the memory: of
		// what is left all is theirs.
		c.TxFrames, c.Sockets = link.Info().TxFrames, 1
	}
	return links, nil
}

// collectFrom opens a queue, or with all every receive queue with that one first, and has the
// program hand over what comes on them. The card chooses the queue of a flow.
func collectFrom(
	p *bpf.Collector, c xsk.Config, queue int, all bool,
) (_ xsk.Link, err error) {
	if c.Mode, err = modeUnder(p.Mode(), c.Mode); err != nil {
		return nil, err
	}
	queues := []int{queue}
	if all {
		n, err := host.ReceiveQueues(c.Interface)
		if err != nil {
			return nil, err
		}
		for i := range n {
			if i != queue {
				queues = append(queues, i)
			}
		}
	}
	g, err := xsk.OpenGroup(c, queues)
	if err != nil {
		return nil, err
	}
	if err := g.Sockets(p.Register); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// resolve finds the way to a host and a port for its answers.
func (p *SendPort) resolve(ctx context.Context, kernel *host.Kernel, to string) error {
	ctx, cancel := context.WithTimeout(ctx, resolvePatience)
	defer cancel()
	dst, err := lookup(ctx, to)
	if err != nil {
		return err
	}
	vlan, src, err := kernel.Source(dst)
	if err != nil {
		return err
	}
	hop, err := kernel.ResolveOn(ctx, vlan, src, dst)
	if err != nil {
		return err
	}
	path := &p.Route.Path
	path.DstMAC, path.Src, path.Dst = hop.MAC, wire.GIDFromAddr(src), wire.GIDFromAddr(dst)
	path.Tags = vlan.Tags(0)
	at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(src, 0))
	if src.IsLinkLocalUnicast() {
		at.Zone = p.Name
	}
	if p.conn, err = net.ListenUDP("udp", at); err != nil {
		return fmt.Errorf("a port for answers: %w", err)
	}
	path.SrcPort = uint16(p.conn.LocalAddr().(*net.UDPAddr).Port)
	return nil
}

// resolvePatience is how long names and neighbours have to answer.
const resolvePatience = 5 * time.Second

// lookup finds the address of a host.
func lookup(ctx context.Context, to string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(to); err == nil {
		return a.Unmap().WithZone(""), nil
	}
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", to)
	if err != nil {
		return netip.Addr{}, err
	}
	return list[0].Unmap().WithZone(""), nil
}

// Attached says where the XDP program runs, and why not in the driver where that was tried. It is
// Auto without one.
func (p *SendPort) Attached() (mode bpf.Mode, nativeErr error) {
	if p.program == nil {
		return bpf.Auto, nil
	}
	return p.program.Mode(), p.program.NativeErr()
}

// Close gives the interface back.
func (p *SendPort) Close() error {
	var errs []error
	if p.program != nil {
		errs = append(errs, p.program.Close())
	}
	if p.conn != nil {
		errs = append(errs, p.conn.Close())
	}
	for _, link := range p.Links {
		errs = append(errs, link.Close())
	}
	return errors.Join(errs...)
}

// How often the end of flows is told to a sink, and how long it has to answer each time: 2 s in
// all where perhaps there is none, and 10 s once one has answered anything, now or in an earlier
// run: a busy machine may leave it without a processor.
const (
	tries     = 10
	moreTries = 50
	answerIn  = 200 * time.Millisecond
)

// Confirm ends the flows of a sender and asks what came of them. ok is false when somebody did
// not answer: there is no sink, or its answers are lost.
func (p *SendPort) Confirm(ctx context.Context, s *Sender) (of gen.Account, ok bool, err error) {
	a := answers{run: p.Route.Run, of: make(map[uint16]answer, len(s.Flows)), flows: s.Flows}
	done := func(flow int) bool { return a.of[uint16(flow)].final }
	want := 0
	for _, f := range s.Flows {
		if !f.Silent() {
			want++
		}
	}
	for n := 0; n < tries || p.heard && n < moreTries; n++ {
		if want == 0 {
			break // nobody counts these
		}
		if err := s.End(done); err != nil {
			return of, false, err
		}
		if p.conn == nil || ctx.Err() != nil {
			return of, false, nil
		}
		if err := a.read(p.conn, want, time.Now().Add(answerIn)); err != nil {
			return of, false, err
		}
		p.heard = p.heard || len(a.of) > 0
		if a.final == want {
			return a.sum(), true, nil
		}
	}
	return of, false, nil
}

// answers are what a sink said of flows.
type answers struct {
	run   uint8
	flows []*gen.Flow
	of    map[uint16]answer
	final int // of how many flows
}

// An answer is what a sink said of a flow. It is final when it is all of it, or was said twice:
// the end of a flow may come by another queue than what was sent before it, and sooner.
type answer struct {
	frames  uint64
	final   bool
	transit gen.Transit
}

// sum is that of all flows: the mean time is that of all frames, the variation that of the flow
// with the largest.
func (a *answers) sum() (of gen.Account) {
	mean := 0.0
	for _, n := range a.of {
		of.Received += n.frames
		mean += float64(n.frames) * float64(n.transit.Mean)
		if t := n.transit; t.Max > 0 {
			if of.Max == 0 || t.Min < of.Min {
				of.Min = t.Min
			}
			of.Max, of.Jitter = max(of.Max, t.Max), max(of.Jitter, t.Jitter)
		}
	}
	of.Mean = uint32(mean / float64(max(1, of.Received)))
	return of
}

// read takes answers until all that were asked for are there, or it is late.
func (a *answers) read(conn *net.UDPConn, want int, late time.Time) error {
	if err := conn.SetReadDeadline(late); err != nil {
		return err
	}
	var b [gen.MaxAnswer]byte
	for asked := want - a.final; asked > 0; {
		n, _, err := conn.ReadFromUDPAddrPort(b[:])
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout():
			return nil
		case err != nil:
			return fmt.Errorf("answers: %w", err)
		}
		if a.take(b[:n]) {
			asked--
		}
	}
	return nil
}

// take believes an answer that can be true, and reports whether it was one that was missing.
func (a *answers) take(b []byte) bool {
	s, ok := gen.ParseSignature(b)
	if !ok || s.Kind != gen.Report || s.Run != a.run || int(s.Flow) >= len(a.flows) ||
		s.Seq > a.flows[s.Flow].Signed() {
		return false
	}
	before, said := a.of[s.Flow]
	if before.final {
		return false
	}
	now := answer{
		frames: s.Seq, final: s.Seq == a.flows[s.Flow].Signed() || said && s.Seq == before.frames,
	}
	if t, ok := gen.ParseTransit(b); ok {
		now.transit = t
	}
	if a.of[s.Flow] = now; now.final {
		a.final++
	}
	return true
}

// A SinkPort is an interface that a sink collects from.
type SinkPort struct {
	Name    string
	Link    xsk.Link
	program *bpf.Collector
}

// OpenSink opens a queue of an interface and has the frames that generators send handed over:
// UDP datagrams to its ports and that of RoCE v2, of whatever address, and the EtherTypes. All else
// goes on to the kernel. It fails where another XDP program is.
func OpenSink(o PortOptions) (_ *SinkPort, err error) {
	kernel, err := host.Open(o.Interface)
	if err != nil {
		return nil, err
	}
	port := kernel.Port()
	if err := kernel.Close(); err != nil {
		return nil, err
	}
	p := &SinkPort{Name: port.Name}
	p.program, err = bpf.Collect(port.Index, bpf.Filter{
		UDPPorts: append([]uint16{wire.UDPPort}, o.Ports...), EtherTypes: o.Types,
	}, bpf.Options{Mode: o.Attach})
	if err != nil {
		return nil, err
	}
	p.Link, err = collectFrom(p.program, xsk.Config{
		Interface: o.Interface, Mode: o.Mode, TxFrames: fewFrames, SndBuf: sendBuffer,
	}, max(0, o.Queue), o.Queue == AllQueues)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Attached says where the XDP program runs, and why not in the driver where that was tried.
func (p *SinkPort) Attached() (mode bpf.Mode, nativeErr error) {
	return p.program.Mode(), p.program.NativeErr()
}

// Close gives the interface back.
func (p *SinkPort) Close() error {
	errs := []error{p.program.Close()}
	if p.Link != nil {
		errs = append(errs, p.Link.Close())
	}
	return errors.Join(errs...)
}
