package main

import (
	"context"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/rdmacm"
)

// simpleSize is the size of the messages of rdma_server in bytes.
const simpleSize = 16

func (a *app) rdmaServerCommand() *cobra.Command {
	var f conversationFlags
	var addr string
	var port int
	c := &cobra.Command{
		Use:   "rdma-server",
		Short: "Take a connection of rdma_cm and a message, and send one, like rdma_server",
		Long: `Wait for a connection of rdma_cm, take a message of 16 bytes and send one. The
client is 'xroce rdma-client', or rdma_client of rdma-core.`,
		Example: `  xroce rdma-server -d eth0
  rdma_client -s 192.0.2.1                        # client on a verbs device`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	f.register(flags)
	flags.StringVarP(&addr, "server", "s", anywhere, "our address, :: for any")
	flags.IntVarP(&port, "port", "p", rdmacm.SimplePort, "port")
	return a.command(c, func(ctx context.Context, _ []string) error {
		at, err := addressOf(ctx, addr, port)
		if err != nil {
			return err
		}
		report := conversationReport{
			Tool: "rdma_server", Role: role(true), Address: at.String(), Size: simpleSize,
		}
		return a.converse(ctx, &f, report, func(s *rdmacm.Station) (rdmacm.Result, error) {
			return s.ServeSimple(ctx, at)
		})
	})
}
