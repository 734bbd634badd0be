package main

import (
	"context"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/rdmacm"
)

// maxCmatose is the largest message in bytes: each connection holds it twice.
const maxCmatose = 1 << 30

// maxAckTimeout is the largest local ACK timeout code.
const maxAckTimeout = 31

func (a *app) ucmatoseCommand() *cobra.Command {
	var f cmatestFlags
	var port int
	var migrate bool
	var ackTimeout uint8
	c := &cobra.Command{
		Use:   "ucmatose [-s SERVER]",
		Short: "Exchange messages over connections of rdma_cm, like ucmatose",
		Long: `Make connections by rdma_cm, send messages over them, first from the server, then
from the client, and hang up. Either end may be ucmatose of rdma-core. Without -s it is
the server. Both ends need the same -c, -C and -S.`,
		Example: `  xroce ucmatose -d eth0                           # server
  xroce ucmatose -d eth0 -s 192.0.2.1              # client
  ucmatose -s 192.0.2.1                            # client on a verbs device
  xroce ucmatose -d eth0 -s 192.0.2.1 -c 8 -C 100 -S 65536`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	f.register(flags, "tcp")
	flags.IntVarP(&port, "port", "p", rdmacm.CmatosePort, "port of the server")
	flags.Uint8VarP(&ackTimeout, "ack-timeout", "a", 0,
		"local ACK timeout, 4.096 us * 2^N (default: twice the packet life time)")
	flags.BoolVarP(&migrate, "migrate", "m", false, "ignored: there are no event channels")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := f.check("tcp", maxCmatose); err != nil {
			return err
		}
		if ackTimeout > maxAckTimeout {
			return usagef("-a %d is not in 0..%d", ackTimeout, maxAckTimeout)
		}
		at, source, err := f.address(ctx, port)
		if err != nil {
			return err
		}
		config := rdmacm.Cmatose{
			Addr: at, Source: source, Connections: f.connections, Count: f.count, Size: f.size,
			TClass: f.tos, AckTimeout: ackTimeout,
		}
		return a.converse(ctx, &f.conversationFlags, f.report("ucmatose", at),
			func(s *rdmacm.Station) (rdmacm.Result, error) {
				if f.server == "" {
					return s.ServeCmatose(ctx, config)
				}
				return s.DialCmatose(ctx, config)
			})
	})
}
