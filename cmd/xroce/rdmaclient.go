package main

import (
	"context"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/rdmacm"
)

func (a *app) rdmaClientCommand() *cobra.Command {
	var f conversationFlags
	var addr string
	var port int
	c := &cobra.Command{
		Use:   "rdma-client -s SERVER",
		Short: "Connect by rdma_cm, send a message and take one, like rdma_client",
		Long: `Connect by rdma_cm, send a message of 16 bytes and take one. The server is
'xroce rdma-server', or rdma_server of rdma-core.`,
		Example: `  xroce rdma-client -d eth0 -s 192.0.2.1
  rdma_server -s 192.0.2.1                        # server on a verbs device`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	f.register(flags)
	flags.StringVarP(&addr, "server", "s", "", "address of the server")
	flags.IntVarP(&port, "port", "p", rdmacm.SimplePort, "port of the server")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if addr == "" {
			return usagef("-s is needed: the address of the server")
		}
		at, err := addressOf(ctx, addr, port)
		if err != nil {
			return err
		}
		report := conversationReport{
			Tool: "rdma_client", Role: role(false), Address: at.String(), Size: simpleSize,
		}
		return a.converse(ctx, &f, report, func(s *rdmacm.Station) (rdmacm.Result, error) {
			return s.DialSimple(ctx, at)
		})
	})
}
