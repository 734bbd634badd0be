package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob"
	"xroce/roce"
)

func (a *app) copyCommand() *cobra.Command {
	var device deviceFlags
	extensions := newExtensionsFlag()
	var f copyFlags
	c := &cobra.Command{
		Use:   "copy FILE... HOST:[PATH] | HOST:PATH FILE",
		Short: "Send files to 'xroce serve', or have one sent",
		Long: `Send files, as messages, to 'xroce serve' on another host and compare their SHA-256
there. HOST is an address of the device there, an IPv6 address in brackets. PATH is
below the directory that is served; without one, or when it names a directory, and
for several files, each keeps its name. With a token both ends need the same one, and a
server without one is not believed. A file that changes meanwhile, or has more than its
size says, as those of /proc, is refused. FILE - is standard input, which needs a PATH.

When HOST:PATH comes first the server sends that file, if it was told to by --allow-read,
to FILE, which may be a directory, or - for standard output.

With -r directories are sent as well, with all that is in them but symbolic links,
devices, and names that begin with a dot, unless --dotfiles asks for these. A directory
becomes PATH, or goes below it when that is empty or ends with a slash. What cannot be
sent is told, and does not keep the rest from it.

When the connection is lost, or the server restarted, another one is made, until nothing
got through for as long as --retry says. It goes on behind what the server has, once
both agree on that by its SHA-256; so does another 'xroce copy' of the same file to the
same place, within the time that the server keeps it. Both ends read what is there for
that, and before that the server brings it to disk, however long it takes: that does not
count for --retry. What was read from standard input cannot be read again, so there is
nothing to go on with.

When frames are lost only those are sent again, and frames that overtake each other
are not taken for lost: extensions that two xroce ends agree on. --extensions none, at
either end, leaves the connection as the standard has it.

With --json each file that was copied is a document, and several files, or -r, have one
more for all.`,
		Example: `  xroce copy disk.img 192.0.2.1: --token-file token
  xroce copy disk.img 192.0.2.1:images/new.img -d eth0 --retry 1h
  xroce copy *.iso notes.txt 192.0.2.1:images/
  xroce copy -r project 192.0.2.1: --token-file token
  tar c project | xroce copy - 192.0.2.1:project.tar
  xroce copy 192.0.2.1:project.tar - | tar x
  xroce copy disk.img '[2001:db8::1]:' -p 7000
  xroce copy disk.img 192.0.2.1: --extensions none`,
		Args: cobra.MinimumNArgs(2),
	}
	flags := c.Flags()
	f.register(flags)
	extensions.register(flags)
	device.register(flags)
	return a.command(c, func(ctx context.Context, args []string) error {
		var err error
		if f.options, err = device.options(a); err != nil {
			return err
		}
		if f.token, err = a.token(f.tokenFile); err != nil {
			return err
		}
		if err := f.check(); err != nil {
			return err
		}
		f.extensions = extensions.Extensions
		return a.copyOrFetch(ctx, &f, args)
	})
}

// copyOrFetch does what the arguments say: the last names the server, or the first of two.
func (a *app) copyOrFetch(ctx context.Context, f *copyFlags, args []string) (err error) {
	last := len(args) - 1
	if f.host, f.path, err = splitTarget(args[last]); err == nil {
		return a.copy(ctx, f, args[:last])
	}
	if last == 1 {
		var back error
		if f.host, f.path, back = splitTarget(args[0]); back == nil {
			return a.fetch(ctx, f, args[1])
		}
	}
	return err
}

// copyFlags say how to find the server and what both ends know.
type copyFlags struct {
	iface, host, path, tokenFile string
	port                         int
	retry                        time.Duration
	recursive, dotfiles          bool
	overwrite                    bool

	options    engine.Options
	token      transfer.Token
	extensions roce.Extensions
}

func (f *copyFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.iface, "device", "d", "", "interface (default: the one that fits)")
	flags.IntVarP(&f.port, "port", "p", oob.Port, "port of rdma_cm of the server")
	flags.StringVar(&f.tokenFile, "token-file", "", tokenUsage)
	flags.DurationVar(&f.retry, "retry", time.Minute,
		"for how long nothing may get through until it fails; 0 to try once")
	flags.BoolVarP(&f.recursive, "recursive", "r", false, "send directories, too")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace FILE; 'xroce serve' has its own")
	flags.BoolVar(&f.dotfiles, "dotfiles", false, "with -r, send names that begin with a dot")
}

func (f *copyFlags) check() error {
	if f.retry < 0 {
		return usagef("--retry %v is negative", f.retry)
	}
	return nil
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

// openClient opens what a client needs. Without an error, leave must be called.
func (a *app) openClient(
	ctx context.Context, f *copyFlags,
) (_ context.Context, c *transfer.Client, leave func() error, err error) {
	to, err := addressOf(ctx, f.host, f.port)
	if err != nil {
		return nil, nil, nil, err
	}
	link := tcpLink{iface: f.iface, host: to.Addr().String(), port: f.port}
	dev, err := a.openFor(ctx, link, f.options)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := transfer.OpenStation(dev, f.extensions, cm.Options{})
	if err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	ctx, unbind := s.Bind(ctx)
	c = &transfer.Client{
		Token: f.token, Retry: f.retry,
		Dial: func(ctx context.Context) (*transfer.Link, error) { return s.Dial(ctx, to) },
		Lost: func(err error) {
			a.logger.Warn("the connection is lost, another one is tried", "error",
				plain.Brief(err.Error()))
		},
	}
	return ctx, c, func() error {
		c.Close()
		unbind()
		return errors.Join(s.Close(), dev.Close())
	}, nil
}
