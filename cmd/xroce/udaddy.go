package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/rdmacm"
	"xroce/roce/wire"
)

func (a *app) udaddyCommand() *cobra.Command {
	var f cmatestFlags
	var space string
	c := &cobra.Command{
		Use:   "udaddy [-s SERVER]",
		Short: "Exchange datagrams with a queue pair that rdma_cm found, like udaddy",
		Long: `Look up a datagram queue pair by rdma_cm, send messages to it, and get as many
back. Either end may be udaddy of rdma-core. Without -s it is the server. Both ends need
the same -c, -C and -S. A datagram that is lost is not sent again: then both wait.`,
		Example: `  xroce udaddy -d eth0                            # server
  xroce udaddy -d eth0 -s 192.0.2.1               # client
  udaddy -s 192.0.2.1                             # client on a verbs device
  xroce udaddy -d eth0 -s 192.0.2.1 -c 4 -C 100 -S 1024`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	f.register(flags, "udp")
	flags.StringVarP(&space, "port-space-number", "p", "0x111", "port space by its number")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if flags.Changed("port-space-number") {
			f.space = spaceName(space)
		}
		if err := f.check("udp", wire.MTU4096.Bytes()); err != nil {
			return err
		}
		at, source, err := f.address(ctx, rdmacm.UdaddyPort)
		if err != nil {
			return err
		}
		if f.server != "" && source.IsValid() {
			return usagef("-b is for servers here: a lookup leaves from the first address")
		}
		config := rdmacm.Udaddy{
			Addr: at, Connections: f.connections, Count: f.count, Size: f.size, TClass: f.tos,
		}
		return a.converse(ctx, &f.conversationFlags, f.report("udaddy", at),
			func(s *rdmacm.Station) (rdmacm.Result, error) {
				if f.server == "" {
					return s.ServeUdaddy(ctx, config)
				}
				return s.DialUdaddy(ctx, config)
			})
	})
}

// spaceName is the name of a port space that was given by its number.
func spaceName(number string) string {
	n, err := strconv.ParseUint(strings.TrimSpace(number), 0, 32)
	switch {
	case err != nil:
		return number
	case n == 0x111:
		return "udp"
	case n == 0x2:
		return "ipoib"
	}
	return number
}
