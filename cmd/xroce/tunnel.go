package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/tunnel"
	rcm "xroce/roce/cm"
)

func (a *app) tunnelCommand() *cobra.Command {
	var device deviceFlags
	f := newTunnelFlags()
	c := &cobra.Command{
		Use:   "tunnel",
		Short: "Join Ethernet segments, or route IP, over RoCE",
		Long: `Join the Ethernet segments of two or more hosts, or route IP between them: what the
kernel sends into a TAP or TUN interface, which is made, travels to the peers in RoCE, and
what comes from them goes into it. Both ends run the command, each naming the others. It
runs until Ctrl-C or SIGTERM, and then prints what it counted; SIGUSR1 prints that, too.

A TAP carries Ethernet frames to the peers that have their addresses, which are
learned; a TUN carries IP packets by prefix, with an MTU of 1020 over ud where the
device has one of 1500: too small for IPv6, so better over rc. Over rc packets of TCP
travel uncut, up to 64 KiB; what is lost on the way is sent again. Over ud and uc what
is lost stays lost, as on a wire; uc carries what is longer than the MTU in one message.
Over native it travels in raw packets of InfiniBand (EtherType 0x88B5), which no router
takes and no key encrypts.

With --learn PREFIX an end takes those as peers that ask from an address in the prefix,
answer there, and know the --key if there is one: a hub need not name those that name it.
They are forgotten when they have not answered for a while. Peers of a hub see it, and not
each other: nothing is forwarded from one to another. A TUN learns where hosts behind such
peers are by what they send, and what --route says goes first. Without a key those behind one MAC
address on the link, such as a router, are a quarter of --learn-max, or --learn-station.

With --group, over ud, what is for all peers, or for an address that is not known, goes to
a multicast group once instead of to each peer. All ends have the same group, and there is
no --key.

--tos gives all packets outside one DSCP, as 0xb8 for expedited forwarding; without it those
over ud have that of the datagram inside, and those of connections none. --priority is that of
their VLAN tags, so the peers are to be in a VLAN.

Several tunnels of a network are kept apart by partitions: those with another --pkey do
not hear each other, nor do two ends without 0x8000 in it. Those with another --segment
are refused.

Without --key whoever is on the path can read and forge what is in the tunnel. With it
everything is encrypted, with keys that change, and what is not is refused: all ends need
the same secret, of at least 16 bytes in a file of your own.`,
		Example: `  umask 077; head -c 32 /dev/urandom | base64 > key  # take it to the other end
  xroce tunnel -d eth0 --tap tap0 --key key --peer 192.0.2.2
  xroce tunnel -d eth0 --tap tap0 --peer 192.0.2.2  # there: --peer 192.0.2.1
  xroce tunnel -d eth0 --tap tap0 --key key --learn 192.0.2.0/24  # a hub
  xroce tunnel -d eth0 --tap tap0 --group 239.192.0.1 --peer 192.0.2.2,192.0.2.3
  xroce tunnel -d eth0 --tun tun0 --over rc --peer 192.0.2.2
  xroce tunnel -d eth0 --tun tun0 --peer 192.0.2.2,192.0.2.3 \
      --route 10.2.0.0/16=192.0.2.2 --route 10.3.0.0/16=192.0.2.3`,
		Args: cobra.NoArgs,
	}
	f.register(c.Flags())
	device.register(c.Flags())
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := readConfig(f.file, c.LocalNonPersistentFlags()); err != nil {
			return err
		}
		options, err := device.options(a)
		if err != nil {
			return err
		}
		if err := f.check(ctx); err != nil {
			return err
		}
		options.PKeys = f.partition()
		f.poll(&options)
		return a.tunnel(ctx, f, options)
	})
}

// tunnel opens what a tunnel needs and runs it.
func (a *app) tunnel(ctx context.Context, f *tunnelFlags, o engine.Options) (err error) {
	iface, err := a.chooseInterface(f.iface, netip.Addr{})
	if err != nil {
		return err
	}
	dev, err := a.openDevice(iface, o)
	if err != nil {
		return err
	}
	defer dev.Close()
	manager, err := cm.Open(dev, tunnelManager)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Close()) }()
	if f.inside.MTU == 0 {
		f.inside.MTU = min(tunnel.DefaultMTU, tunnel.MaxMTU(dev, f.inside.Kind, f.config))
	}
	inside, err := tunnel.OpenInside(f.inside)
	if err != nil {
		return err
	}
	f.config.Logger = a.logger
	t, err := tunnel.Open(dev, manager, inside, f.config)
	if err != nil {
		return err
	}
	a.warnLinkDown(iface)
	a.tellReady(&net.UDPAddr{Port: int(f.config.Port)}, fmt.Sprintf(
		", %s %s, MTU %d, format %s over %s, %s, device %s", inside.Kind, inside.Name,
		inside.MTU, f.config.Format, f.config.Over, f.peersText(), dev.Name()))
	watching, done := context.WithCancel(ctx)
	defer done()
	go a.tellTunnelWhenAsked(watching, t)
	err = t.Run(ctx)
	done()
	return errors.Join(err, a.printTunnel(t.Stats()))
}

// tunnelManager has shorter times than rdma_cm: peers are near, and may be started in any order.
var tunnelManager = cm.Options{
	Machine: rcm.Config{ResponseTimeout: 16, PacketLifeTime: 14}, Linger: time.Second,
}

// tellTunnelWhenAsked prints what a tunnel counted, each time that SIGUSR1 comes.
func (a *app) tellTunnelWhenAsked(ctx context.Context, t *tunnel.Tunnel) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGUSR1)
	defer signal.Stop(asked)
	for {
		select {
		case <-asked:
			if err := a.printTunnel(t.Stats()); err != nil {
				a.logger.Error("what was counted is not printed", "error", err.Error())
			}
		case <-ctx.Done():
			return
		}
	}
}

// learnedText says how many peers were learned, "" for none.
func learnedText(s tunnel.Stats) string {
	if s.Learned == 0 {
		return ""
	}
	return fmt.Sprintf(", %d peers learned, %d forgotten", s.Learned, s.Forgotten)
}

// printTunnel prints what a tunnel counted.
func (a *app) printTunnel(s tunnel.Stats) error {
	if a.json {
		return a.printJSON(s)
	}
	for _, p := range s.Peers {
		state := "down"
		if p.Up {
			state = "up"
		}
		if p.Learned {
			state += ", learned"
		}
		a.printf("peer %s %s: sent %d datagrams, %d bytes; received %d datagrams, %d bytes%s\n",
			p.Addr, state, p.TxDatagrams, p.TxBytes, p.RxDatagrams, p.RxBytes,
			dropsText(p.Dropped))
	}
	if g := s.Group; g != nil {
		a.printf("group %s: sent %d datagrams, %d bytes in %d packets; received %d packets%s\n",
			g.Addr, g.TxDatagrams, g.TxBytes, g.TxPackets, g.RxPackets, dropsText(g.Dropped))
	}
	a.printf("%s: %d addresses%s%s\n", s.Inside, s.Addresses, learnedText(s),
		dropsText(s.Dropped))
	return nil
}
