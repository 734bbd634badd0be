package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"strings"
	"time"

	"xroce/bench/worker"
	"xroce/encap"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/tunnel"
	rcm "xroce/roce/cm"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// InsideName is the interface of a tunnel, of ours and of others.
const InsideName = "in0"

// sealed is how modes end that encrypt.
const sealed = "-key"

// tunnelModes are the tunnels that are measured.
var tunnelModes = map[string]struct {
	kind   tunnel.InsideKind
	over   tunnel.Over
	format encap.Format
}{
	"tun-rc":     {tunnel.TUN, tunnel.OverRC, encap.IPoIBConnected},
	"tap-rc":     {tunnel.TAP, tunnel.OverRC, encap.EoIB},
	"tap-ud":     {tunnel.TAP, tunnel.OverUD, encap.EoIB},
	"tap-native": {tunnel.TAP, tunnel.OverNative, encap.Raw},
}

// tunnelLimit is how long a peer may take to be there.
var tunnelLimit = timeout.Scaled(10 * time.Second)

// Tunnel is one end of a tunnel with the settings of xroce tunnel: ready when its peer is there,
// and open until the go. With o.Seed it loses packets.
func Tunnel(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	dev, link, err := openTunnelDevice(o)
	if err != nil {
		return r, err
	}
	defer dev.Close()
	manager, err := cm.Open(dev, cm.Options{Machine: rcm.Config{
		ResponseTimeout: 16, PacketLifeTime: 14, // as the command has them
	}})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	t, err := openTunnel(dev, manager, o)
	if err != nil {
		return r, err
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- t.Run(ctx) }()
	if err = awaitPeer(t, ended); err == nil {
		w := worker.NewWindow(worker.Options{})
		w.Tick(w.Now(), 0)
		err = worker.Ready(in, out)
		w.Close(0)
		counts, failed := tunnelCounters(dev, link)
		if err = errors.Join(err, failed); err == nil {
			r = tunnelReport(o, t.Stats(), w, counts)
		}
	}
	end()
	return r, errors.Join(err, <-ended)
}

// tunnelCounters are those of the device, and the losses that were made on purpose by a link, if
// there is one.
func tunnelCounters(dev *engine.Device, link *lossyLink) (map[string]uint64, error) {
	counts, err := deviceCounters(dev)
	if err == nil && link != nil {
		counts[worker.DroppedOnPurpose] = link.dropped.Load()
	}
	return counts, err
}

// openTunnelDevice opens a device that one thread drives, with o.Seed on a link that loses packets.
func openTunnelDevice(o worker.Options) (*engine.Device, *lossyLink, error) {
	options := engine.Options{Mode: xsk.ModeCopy, Direct: true, Queues: []int{o.Queue}}
	if o.Seed != 0 {
		return openLossy(o, options)
	}
	dev, err := engine.Open(o.Interface, options)
	return dev, nil, err
}

// openTunnel makes the interface and the tunnel.
func openTunnel(dev *engine.Device, m *cm.Manager, o worker.Options) (*tunnel.Tunnel, error) {
	name, encrypts := strings.CutSuffix(o.Mode, sealed)
	mode, ok := tunnelModes[name]
	if !ok {
		return nil, fmt.Errorf("load: no mode %q of a tunnel", o.Mode)
	}
	peer, err := netip.ParseAddr(o.Remote)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c := tunnel.Config{
		Over: mode.over, Format: mode.format, Peers: []tunnel.Peer{{Addr: peer}},
	}
	if encrypts {
		if c.Key, err = tunnel.ParseKey([]byte("the secret of a benchmark is none")); err != nil {
			return nil, err
		}
	}
	inside, err := tunnel.OpenInside(tunnel.InsideConfig{
		Name: InsideName, Kind: mode.kind, Polled: true, Whole: true,
		MTU: min(tunnel.DefaultMTU, tunnel.MaxMTU(dev, mode.kind, c)),
	})
	if err != nil {
		return nil, err
	}
	return tunnel.Open(dev, m, inside, c)
}

// awaitPeer waits until the peer is there.
func awaitPeer(t *tunnel.Tunnel, ended <-chan error) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(tunnelLimit)
	for !t.Stats().Peers[0].Up {
		select {
		case <-ticker.C:
		case err := <-ended:
			return errors.Join(errors.New("load: the tunnel ended"), err)
		case <-late:
			return fmt.Errorf("load: the other end of the tunnel is not there after %v",
				tunnelLimit)
		}
	}
	return nil
}

// tunnelReport says what went through a tunnel, and what did not.
func tunnelReport(
	o worker.Options, s tunnel.Stats, w *worker.Window, counts map[string]uint64,
) worker.Report {
	p := s.Peers[0]
	r := worker.Report{
		Mode: "tunnel " + o.Mode, Seconds: w.Seconds(), Cost: w.Cost(),
		Counters: counts,
	}
	maps.Copy(counts, map[string]uint64{
		"tunnel_tx_datagrams": p.TxDatagrams, "tunnel_tx_bytes": p.TxBytes,
		"tunnel_tx_packets": p.TxPackets, "tunnel_rx_datagrams": p.RxDatagrams,
		"tunnel_rx_bytes": p.RxBytes, "tunnel_rx_packets": p.RxPackets,
	})
	for name, n := range s.Dropped {
		r.Counters["dropped_"+name] += n
	}
	for name, n := range p.Dropped {
		r.Counters["dropped_"+name] += n
	}
	return r
}
