package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/xsk"
)

// A lossyLink drops frames on their way out, each with the same probability and
// independent of the others, as a seed decides.
type lossyLink struct {
	xsk.Link
	random  *rand.PCG
	below   uint64 // a frame whose draw of 32 bits is below is dropped
	kept    []xsk.TxFrame
	lost    []xsk.TxFrame
	dropped atomic.Uint64
}

// newLossyLink makes a link lose ppm frames in a million.
func newLossyLink(l xsk.Link, seed uint64, ppm int) *lossyLink {
	frames := l.Info().TxFrames
	return &lossyLink{
		Link:   l,
		random: rand.NewPCG(seed, 0),
		below:  uint64(ppm) << 32 / 1e6,
		kept:   make([]xsk.TxFrame, 0, frames),
		lost:   make([]xsk.TxFrame, 0, frames),
	}
}

// Transmit implements xsk.Link.
func (l *lossyLink) Transmit(frames []xsk.TxFrame) {
	if l.below == 0 {
		l.Link.Transmit(frames)
		return
	}
	l.kept, l.lost = l.kept[:0], l.lost[:0]
	for _, f := range frames {
		if l.random.Uint64()>>32 < l.below {
			l.lost = append(l.lost, f)
		} else {
			l.kept = append(l.kept, f)
		}
	}
	l.dropped.Add(uint64(len(l.lost)))
	l.Link.Transmit(l.kept)
	l.Link.Return(l.lost)
}

// WakeOn implements xsk.FDWaiter.
func (l *lossyLink) WakeOn(fd int) { l.Link.(xsk.FDWaiter).WakeOn(fd) }

// openLossy opens a device over a lossy link. The XDP program hands it every
// frame of the interface.
func openLossy(o worker.Options, options engine.Options) (*engine.Device, *lossyLink, error) {
	host, err := newStageHost(o)
	if err != nil {
		return nil, nil, err
	}
	s, err := xsk.Open(xsk.Config{
		Interface: o.Interface, Queue: o.Queue, Mode: options.Mode, SndBuf: o.SendBuf,
		BindTimeout: bindTimeout(),
	})
	if err != nil {
		return nil, nil, err
	}
	if host.program, err = redirectAll(o.Interface, o.Queue, s.FD()); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	link := newLossyLink(s, uint64(o.Seed), o.LossPPM)
	d, err := engine.OpenLink(link, host, options)
	return d, link, err
}

// A stageHost is the engine.Host of an interface of the stage, where there is
// one neighbour and its address is known.
type stageHost struct {
	port    engine.Port
	peer    netip.Addr
	peerMAC [6]byte
	program *program
}

func newStageHost(o worker.Options) (*stageHost, error) {
	nic, err := net.InterfaceByName(o.Interface)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	local, err := netip.ParseAddr(o.Local)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	peer, err := netip.ParseAddr(o.Remote)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	h := &stageHost{
		port: engine.Port{
			Name: nic.Name, Index: nic.Index, MTU: nic.MTU, Up: true, Addrs: []netip.Addr{local},
		},
		peer: peer,
	}
	copy(h.port.MAC[:], nic.HardwareAddr)
	copy(h.peerMAC[:], o.Header) // a frame begins with its destination
	return h, nil
}

// Port implements engine.Host.
func (h *stageHost) Port() engine.Port { return h.port }

// Resolve implements engine.Host.
func (h *stageHost) Resolve(_ context.Context, _, dst netip.Addr) ([6]byte, error) {
	if dst != h.peer {
		return [6]byte{}, fmt.Errorf("%w: %s", engine.ErrNoNeighbour, dst)
	}
	return h.peerMAC, nil
}

// Close implements engine.Host: it takes the XDP program away.
func (h *stageHost) Close() error {
	if h.program != nil {
		h.program.Close()
	}
	return nil
}
