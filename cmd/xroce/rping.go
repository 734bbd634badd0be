package main

import (
	"context"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/rdmacm"
)

// rpingFlags are the flags of rping.
type rpingFlags struct {
	conversationFlags
	server, client, persistent, validate, own bool
	addr, source                              string
	port, count, size                         int
}

func (a *app) rpingCommand() *cobra.Command {
	var p rpingFlags
	c := &cobra.Command{
		Use:   "rping (-s | -c -a ADDR)",
		Short: "Ping by RDMA READ and WRITE over rdma_cm, like rping, which may be the other end",
		Long: `Ping over a connection of rdma_cm: the client lends the server memory, the server
READs the client's text and WRITEs it back. Either end may be rping of rdma-core. A
client tells at the end how long the rounds took, as ping does: each has two messages
each way, a READ and a WRITE. -v shows the text of each. Where rping has -d for its log,
here it is the device, and -vv the log.`,
		Example: `  xroce rping -d eth0 -s                          # server
  xroce rping -d eth0 -c -a 192.0.2.1 -C 10 -V -v # client
  rping -c -a 192.0.2.1 -C 10 -V -v               # client on a verbs device
  xroce rping -d eth0 -s -P                       # server of many clients`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	p.register(flags)
	flags.BoolVarP(&p.server, "server", "s", false, "be the server")
	flags.BoolVarP(&p.client, "client", "c", false, "be the client")
	flags.StringVarP(&p.addr, "addr", "a", "", "address of the server (a server's default: any)")
	flags.StringVarP(&p.source, "source", "I", "", "address of the client")
	flags.IntVarP(&p.port, "port", "p", rdmacm.RpingPort, "port of the server")
	flags.IntVarP(&p.count, "count", "C", 0, "rounds of a client, 0 for no end")
	flags.IntVarP(&p.size, "size", "S", rdmacm.RpingDefaultSize, "bytes of text")
	flags.BoolVarP(&p.validate, "validate", "V", false, "compare what comes back")
	flags.BoolVarP(&p.persistent, "persistent", "P", false, "serve clients until interrupted")
	flags.BoolVarP(&p.own, "own-qp", "q", false, "ignored: who makes a queue pair is all the same")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := p.check(); err != nil {
			return err
		}
		if p.addr == "" {
			p.addr = anywhere
		}
		at, err := addressOf(ctx, p.addr, p.port)
		if err != nil {
			return err
		}
		source, err := addressOf(ctx, p.source, p.port)
		if err != nil {
			return err
		}
		config := rdmacm.Rping{
			Addr: at, Source: source.Addr(), Count: p.count, Size: p.size,
			Validate: p.validate, Verbose: a.verbose > 0,
		}
		report := conversationReport{
			Tool: "rping", Role: role(p.server), Address: at.String(), Size: p.size,
		}
		return a.converse(ctx, &p.conversationFlags, report,
			func(s *rdmacm.Station) (rdmacm.Result, error) {
				switch {
				case p.client:
					return s.DialRping(ctx, config)
				case p.persistent:
					return rdmacm.Result{}, s.ServeRpings(ctx, config)
				}
				return s.ServeRping(ctx, config)
			})
	})
}

// check refuses what is out of range or does not go together.
func (p *rpingFlags) check() error {
	switch {
	case p.server == p.client:
		return usagef("either -s or -c")
	case p.client && p.addr == "":
		return usagef("-c needs -a, the address of the server")
	case p.client && p.persistent:
		return usagef("-P is for servers")
	case p.count < 0:
		return usagef("-C %d is negative", p.count)
	case p.size < rdmacm.RpingMinSize || p.size > rdmacm.RpingMaxSize:
		return usagef("-S %d is not in %d..%d", p.size, rdmacm.RpingMinSize,
			rdmacm.RpingMaxSize)
	}
	return nil
}
