package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
	"xroce/engine/oob"
)

func (a *app) copyCommand() *cobra.Command {
	var device deviceFlags
	extensions := newExtensionsFlag()
	var link tcpLink
	var gid int
	var tokenFile string
	c := &cobra.Command{
		Use:   "copy FILE HOST:[PATH]",
		Short: "Send a file to 'xroce serve' by RDMA WRITE",
		Long: `Send a file by RDMA WRITE to 'xroce serve' on another host and compare its SHA-256
there. PATH is below the directory that is served; without one, or when it names a
directory, the file keeps its name. An IPv6 address goes into brackets. With a
token both ends need the same one, and a server without one is not believed. A file
that changes meanwhile, or has more than its size says, as those of /proc, is refused.

When frames are lost only those are sent again, and frames that overtake each other
are not taken for lost: extensions that two xroce ends agree on. --extensions none, at
either end, leaves the connection as the standard has it.`,
		Example: `  xroce copy disk.img 192.0.2.1: --token-file token
  xroce copy disk.img 192.0.2.1:images/new.img -d eth0
  xroce copy disk.img '[2001:db8::1]:' -p 7000
  xroce copy disk.img 192.0.2.1: --extensions none`,
		Args: cobra.ExactArgs(2),
	}
	flags := c.Flags()
	flags.StringVarP(&link.iface, "device", "d", "", "interface (default: the one that fits)")
	flags.IntVarP(&link.port, "port", "p", oob.Port, "TCP port of the server")
	flags.IntVarP(&gid, "gid-index", "g", peer.AutoGID, "our GID; -1 for the one that fits")
	flags.StringVar(&tokenFile, "token-file", "", tokenUsage)
	extensions.register(flags)
	device.register(flags)
	return a.command(c, func(ctx context.Context, args []string) error {
		options, err := device.options(a)
		if err != nil {
			return err
		}
		token, err := a.token(tokenFile)
		if err != nil {
			return err
		}
		host, path, err := splitTarget(args[1])
		if err != nil {
			return err
		}
		link.host = host
		return a.copy(ctx, link, options, transfer.SendConfig{
			File: args[0], Path: path, Token: token, GIDIndex: gid,
			Extensions: extensions.Extensions,
		})
	})
}

// splitTarget takes HOST:PATH apart.
func splitTarget(target string) (host, path string, err error) {
	if rest, ok := strings.CutPrefix(target, "["); ok {
		if host, path, ok = strings.Cut(rest, "]:"); ok && host != "" {
			return host, path, checkPath(path)
		}
	} else if host, path, ok := strings.Cut(target, ":"); ok && host != "" {
		return host, path, checkPath(path)
	}
	return "", "", usagef("%q is not HOST:[PATH]; an IPv6 address goes into brackets", target)
}

// checkPath refuses early what the server would refuse.
func checkPath(path string) error {
	if path != "" && !filepath.IsLocal(path) {
		return usagef("path %q is not below the directory that is served", path)
	}
	return nil
}

// copy sends one file and prints what came of it.
func (a *app) copy(
	ctx context.Context, link tcpLink, o engine.Options, c transfer.SendConfig,
) error {
	// A file that cannot be sent is told before anything is opened.
	if err := transfer.CheckSource(c.File); err != nil {
		return fmt.Errorf("%s was not copied: %w", c.File, err)
	}
	link.check = func(dev *engine.Device) error { return checkGID(dev, c.GIDIndex) }
	conn, dev, err := a.meet(ctx, link, o)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer conn.Close()
	line := a.progress(plain.Text(filepath.Base(c.File)), false)
	defer line.Close()
	c.Progress = line.Update
	result, err := transfer.Send(ctx, dev, conn, c)
	line.Close()
	if err != nil {
		return fmt.Errorf("%s was not copied: %w", c.File, err)
	}
	return a.printTransfer("copied", link.host, result)
}
