package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/perfdump"
	"xroce/cmd/xroce/internal/perf"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/wire"
)

// perfCommand has a subcommand for each test of perftest.
func (a *app) perfCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth and latency with a peer, which may be perftest's ib_send_bw",
		Long: `Measure bandwidth and latency as the tools of perftest do: ib_send_bw, ib_write_lat
and their family. Either end may be one of them; flags, columns and JSON keys are
theirs. Without HOST a test waits for a client, with HOST it is the client of the server
there. Both ends need the same -s, -n, -c, -q, -a, -b and -D. A Soft-RoCE peer needs
-x INDEX of a RoCE v2 GID. With -R rdma_cm connects, and there is no TCP; with -z it
carries what the ends tell each other, and connects nothing.`,
		Example: `  xroce perf send-bw -d eth0                      # server
  xroce perf send-bw -d eth0 192.0.2.1            # client
  ib_send_bw -d rxe0 -x 1 192.0.2.1               # client on a verbs device
  xroce perf write-lat -d eth0 -s 64 -n 10000 192.0.2.1
  xroce perf read-bw -d eth0 -a --report_gbits 192.0.2.1`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, test := range perf.Tests {
		c.AddCommand(a.perfTestCommand(test))
	}
	return c
}

func (a *app) perfTestCommand(test perf.Test) *cobra.Command {
	f := newPerfFlags(test)
	c := &cobra.Command{
		Use:     test.Name() + " [flags] [HOST]",
		Aliases: []string{test.Tool(), strings.TrimPrefix(test.Tool(), "ib_")},
		Short:   "Measure like " + test.Tool() + ", which may be the other end",
		Example: fmt.Sprintf("  xroce perf %s -d eth0                 # server\n"+
			"  xroce perf %[1]s -d eth0 192.0.2.1       # client", test.Name()),
		Args: cobra.MaximumNArgs(1),
	}
	f.register(c.Flags())
	return a.command(c, func(ctx context.Context, args []string) error {
		if f.version {
			a.printf("Version: %s\n", perftest.OurVersion)
			return nil
		}
		config, err := f.config(c.Flags(), len(args) == 1)
		if err != nil {
			return err
		}
		if config.File, err = f.openMapped(); err != nil {
			return err
		}
		defer config.File.Close()
		notes, err := config.Settle(c.Flags().Changed("cq-mod"))
		if err != nil {
			return usagef("%v", err)
		}
		options, err := f.device.options(a)
		if err != nil {
			return err
		}
		if test.Verb == perf.Write && test.Latency && f.mode.name == "" {
			options.Busy = false // the loop itself never sleeps
		}
		// The connection manager and the exchange need a device that runs by itself.
		possible := config.Direct() && !config.Managed && !config.ManagedExchange
		preferred := possible && options.Drivers == 1
		if config.Mode, err = f.mode.apply(&options, preferred, possible); err != nil {
			return err
		}
		config.OtherDrives = !options.Direct
		for _, note := range notes {
			a.logger.Info(note)
		}
		options.RawPackets = config.Type == roce.TypeRawPacket
		link := tcpLink{iface: f.iface, port: f.port}
		if len(args) == 1 {
			link.host = args[0]
		}
		return a.perf(ctx, link, options, perf.Options{
			Config: config, Sized: c.Flags().Changed("size"),
		}, f)
	})
}

// perf makes one test and tells what came of it.
func (a *app) perf(
	ctx context.Context, link tcpLink, o engine.Options, t perf.Options, f *perfFlags,
) error {
	text := perf.Text{W: a.stdout, Output: f.level}
	if !a.json {
		link.waiting = func(net.Addr) { text.Waiting() }
	}
	counters, err := newPerfCounters(f.counters)
	if err != nil {
		return err
	}
	files, err := f.openFiles()
	if err != nil {
		return err
	}
	defer files.close()
	link.check = func(dev *engine.Device) error {
		err := errors.Join(checkGID(dev, t.GIDIndex), checkMTU(dev, t.MTU), counters.check(dev))
		if err != nil {
			return err
		}
		return t.Ready(dev)
	}
	dev, via, leave, err := a.perfMeet(ctx, link, o, t.Config)
	defer leave()
	defer t.Release()
	if err != nil {
		return err
	}
	record := &perf.Record{}
	tell := perf.Reporters{record, counters}
	if !a.json {
		tell = append(tell, text)
	}
	t.Tell = tell
	line := a.progress(t.Test.Name(), true)
	defer line.Close()
	if t.Interval == 0 { // its rows tell how far it is
		t.Progress = line.Update
	}
	if f.dump != "" {
		t.Dump = &perfdump.Dump{}
	}
	_, err = perf.Run(ctx, dev, via, t)
	line.Close()
	switch {
	case err == nil:
	case t.Infinite && len(record.Rows) > 0:
		// It ends by an interruption, here or there: what was measured until then is told.
		return errors.Join(err, a.perfReport(dev, record, counters, files, f.level))
	default:
		return err
	}
	// What cannot be written somewhere is told elsewhere.
	return errors.Join(files.writeDump(t.Dump),
		a.perfReport(dev, record, counters, files, f.level), f.limits(record.Rows))
}

// perfReport tells what a test has come to where programs read it.
func (a *app) perfReport(
	dev *engine.Device, record *perf.Record, counted *perfCounters, files *perfFiles,
	level perf.Output,
) error {
	differences, err := counted.differences()
	if err != nil {
		return err
	}
	written := files.writeReport(record.File())
	if !a.json {
		if len(differences) > 0 && level == perf.OutputFull {
			a.printf("%s", counterLines(differences))
		}
		return written
	}
	counters, err := dev.Counters()
	if err != nil {
		return errors.Join(written, err)
	}
	document := record.Document(counters)
	document.RoCE.Report = differences
	return errors.Join(written, a.printJSON(document))
}

// perfMeet opens the device and finds the peer. The returned function gives all back
// and must be called, with an error too.
func (a *app) perfMeet(
	ctx context.Context, link tcpLink, o engine.Options, c perf.Config,
) (_ *engine.Device, via perf.Connector, leave func(), err error) {
	var undo []func()
	leave = func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
	if !c.Managed && !c.ManagedExchange {
		conn, dev, err := a.meet(ctx, link, o)
		if err != nil {
			return nil, nil, leave, err
		}
		undo = append(undo, func() { dev.Close() }, func() { conn.Close() })
		socket := perf.NewSocket(dev, conn, c.Dial)
		socket.Group = c.Group
		return dev, socket, leave, nil
	}
	iface, err := a.chooseInterface(link.iface, netip.Addr{})
	if err != nil {
		return nil, nil, leave, err
	}
	dev, err := a.openDevice(iface, o)
	if err != nil {
		return nil, nil, leave, err
	}
	undo = append(undo, func() { dev.Close() })
	if err := link.check(dev); err != nil {
		return nil, nil, leave, err
	}
	manager, err := cm.Open(dev, cm.Options{})
	if err != nil {
		return nil, nil, leave, err
	}
	// What closing it could say, closing the device says.
	undo = append(undo, func() { _ = manager.Close() })
	managed, err := a.perfManaged(ctx, dev, manager, link, c)
	if err != nil {
		return nil, nil, leave, err
	}
	undo = append(undo, managed.Close)
	return dev, managed, leave, nil
}

// chosenAddr is the address of an entry of a GID table, for rdma_cm to connect from or listen at.
// There the address is all that chooses: of those that more than one network has it is the first,
// and with a zone of the peer, that says which network it is.
func chosenAddr(entry engine.GIDEntry, table []wire.GID, peer string) (netip.Addr, error) {
	if first := slices.Index(table, entry.GID); first != entry.Index {
		return netip.Addr{}, fmt.Errorf("%w: GID index %d has the address of index %d, on another "+
			"network, which -R cannot tell apart", roce.ErrInvalid, entry.Index, first)
	}
	at, _ := netip.ParseAddr(peer) // a name has no zone
	if z := at.Zone(); z != "" && z != entry.Netdev && z != strconv.Itoa(entry.Ifindex) {
		return netip.Addr{}, fmt.Errorf("%w: GID index %d is on %s, not where %s is",
			roce.ErrInvalid, entry.Index, entry.Netdev, peer)
	}
	return entry.GID.Addr(), nil
}

// perfManaged finds the peer by rdma_cm.
func (a *app) perfManaged(
	ctx context.Context, dev *engine.Device, manager *cm.Manager, link tcpLink, c perf.Config,
) (*perf.Managed, error) {
	var from netip.Addr // where the routes say
	if c.Managed && c.GIDIndex != perf.AutoGID {
		entry, err := dev.QueryGID(c.GIDIndex)
		if err == nil {
			from, err = chosenAddr(entry, dev.GIDs(), link.host)
		}
		if err != nil {
			return nil, err
		}
	}
	host, family := link.host, "ip"
	switch {
	case host != "" && from.Is4():
		family = "ip4"
	case host != "" && (from.Is6() || c.IPv6):
		family = "ip6"
	case host != "":
	case from.IsValid():
		host = from.String()
	case c.IPv6:
		host = "::"
	default:
		host = "0.0.0.0"
	}
	at, err := addressIn(ctx, family, host, link.port)
	if err != nil {
		return nil, err
	}
	noClient := a.noClients()
	strange := func(r *cm.Request, err error) { noClient(r.RemoteAddr().String(), err) }
	managed, err := perf.NewManaged(ctx, dev, manager, at, from, c.Dial, func() {
		a.tellWaiting(net.TCPAddrFromAddrPort(at))
		a.logger.Info("listening", "address", at.String())
		if link.waiting != nil {
			link.waiting(net.TCPAddrFromAddrPort(at))
		}
		if a.listening != nil {
			a.listening(net.TCPAddrFromAddrPort(at))
		}
	}, strange)
	if err == nil {
		managed.Group, managed.ManagedExchange = c.Group, c.ManagedExchange
		a.met()
	}
	return managed, err
}
