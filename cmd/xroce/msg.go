package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/message"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	rmsg "xroce/roce/msg"
)

// msgCommand has a subcommand for each test of messages.
func (a *app) msgCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "msg",
		Short: "Measure messages with a peer, say how one would travel, read captures of them",
		Long: `Measure messages of any size between two ends, say how a message would travel, and
what messages say in a capture.
Without HOST a test waits for a client, with HOST it is the client of the server there.
Both ends need the same --size, -n, --warmup, --reply, --peers, --protocol and
--unverified, and say so when they differ. Every byte is compared. With --json the
counters of this end are told, too.
With several interfaces, -d eth0,eth1, the connections have a rail over each: the client
gives an address of the server for each, in its order. A rail that is lost is dialled
again, and its part goes by the others meanwhile.`,
		Example: `  xroce msg pingpong -d eth0                      # server
  xroce msg pingpong -d eth0 192.0.2.1            # client
  xroce msg stream -d eth0 --size 1048576 --protocol get 192.0.2.1
  xroce msg stream -d eth0,eth1 192.0.2.1,198.51.100.1
  xroce msg explain --size 20000
  xroce msg decode demo.pcapng`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, test := range message.Tests {
		c.AddCommand(a.msgTestCommand(test))
	}
	c.AddCommand(a.msgExplainCommand(), a.msgDecodeCommand())
	return c
}

// msgShort says what each test measures.
var msgShort = map[message.Test]string{
	message.Pingpong: "Measure how long a message takes, one at a time there and back",
	message.Stream:   "Measure how many messages go one way, and how many bytes",
	message.RPC:      "Measure calls of which several are under way, each of which is answered",
}

func (a *app) msgTestCommand(test message.Test) *cobra.Command {
	f := newMsgFlags(test)
	name := string(test)
	c := &cobra.Command{
		Use:   name + " [flags] [HOST]",
		Short: msgShort[test],
		Example: "  xroce msg " + name + " -d eth0                 # server\n" +
			"  xroce msg " + name + " -d eth0 192.0.2.1       # client",
		Args: cobra.MaximumNArgs(1),
	}
	f.register(c.Flags())
	return a.command(c, func(ctx context.Context, args []string) error {
		config, machine, err := f.test()
		if err != nil {
			return err
		}
		if config.Server = len(args) == 0; config.Server {
			args = nil
		} else {
			args = strings.Split(args[0], ",")
		}
		if err := f.addresses(ctx, &config, args); err != nil {
			return err
		}
		return a.measureMessages(ctx, f, config, machine)
	})
}

// Times of a test of messages.
const (
	msgKeepalive = 2 * time.Second // a peer that vanished is noticed soon after
	msgPolling   = time.Hour       // who polls never sleeps
)

// measureMessages makes one test and tells what came of it.
func (a *app) measureMessages(
	ctx context.Context, f *msgFlags, c message.Config, machine rmsg.Config,
) (err error) {
	e, leave, err := a.openMessages(ctx, f, c, machine)
	defer func() { err = errors.Join(err, leave()) }()
	if err != nil {
		return err
	}
	text := &msgReport{config: c, machine: e.machine, devices: e.devices}
	line := a.progress("msg "+string(c.Test), true)
	defer line.Close()
	result, err := message.Run(ctx, e.endpoint, c, message.Hooks{
		Listening: func(at netip.AddrPort) {
			a.tellWaiting(net.TCPAddrFromAddrPort(at))
			a.logger.Info("listening", "address", at.String())
			if a.listening != nil {
				a.listening(net.TCPAddrFromAddrPort(at))
			}
		},
		Met: a.met, Refused: a.noClients(),
		Short: func(up, rails int) {
			a.logger.Warn("begins though not all rails have come", "up", up, "rails", rails)
		},
		Agreed: func(peer string) {
			if text.peer = peer; !a.json {
				text.heading(a.printf)
			}
		},
		Progress: line.Update,
	})
	line.Close()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(text.document(result, e.endpoint.Snapshot()))
	}
	text.result(a.printf, result)
	return nil
}

// openMsg is what a test of messages needs.
type openMsg struct {
	devices  []*engine.Device
	endpoint *msg.Endpoint
	machine  rmsg.Config // with its defaults
}

// openMessages opens devices with an endpoint on them. leave gives all back and must be called,
// with an error too.
func (a *app) openMessages(
	ctx context.Context, f *msgFlags, c message.Config, machine rmsg.Config,
) (o openMsg, leave func() error, err error) {
	var undo []func() error
	leave = func() (err error) {
		for i := len(undo) - 1; i >= 0; i-- {
			err = errors.Join(err, undo[i]())
		}
		return err
	}
	options, err := f.device.options(a)
	if err != nil {
		return o, leave, err
	}
	options.Direct = !f.events && !options.Busy && options.Drivers == 1
	spin := msgPolling
	if f.events {
		spin = -1
	}
	var rails []msg.Rail
	for _, iface := range f.interfaces() {
		link := tcpLink{iface: iface, port: f.port}
		if !c.Server {
			link.host = c.Addr.Addr().String()
		}
		dev, err := a.openFor(ctx, link, options)
		if err != nil {
			return o, leave, err
		}
		o.devices = append(o.devices, dev)
		undo = append(undo, dev.Close)
		manager, err := cm.Open(dev, cm.Options{})
		if err != nil {
			return o, leave, err
		}
		defer func() {
			// Before the endpoint: that waits until its peers have answered, this for not so long.
			undo = append(undo, manager.Close)
		}()
		rails = append(rails, msg.Rail{Device: dev, Manager: manager})
	}
	o.endpoint, err = msg.OpenRails(msg.Options{
		Machine: machine, Extensions: allExtensions, Spin: spin,
	}, rails...)
	if errors.Is(err, rmsg.ErrInvalid) {
		return o, leave, usagef("%v", err)
	}
	if err != nil {
		return o, leave, err
	}
	undo = append(undo, o.endpoint.Close)
	o.machine = o.endpoint.Config()
	return o, leave, nil
}
