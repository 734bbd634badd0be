package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/progress"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
	"xroce/engine/oob"
	"xroce/roce"
)

// maxTransfers bounds how many files are received at once, each with some
// megabytes of registered memory.
const maxTransfers = 8

// A server receives files until its context ends.
type server struct {
	*app
	dev  *engine.Device
	root *os.Root
	gid  int
	ext  roce.Extensions
	once bool

	mu    sync.Mutex // of what follows, and of stdout
	files int
	bytes int64
	err   error // of the last transfer that failed
}

func (a *app) serveCommand() *cobra.Command {
	var device deviceFlags
	extensions := newExtensionsFlag()
	var iface, dir string
	var port, gid int
	var once bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Receive files from 'xroce copy'",
		Long: `Receive files that 'xroce copy' sends, by RDMA WRITE, until Ctrl-C. A file appears
under its name when it is whole and its SHA-256 is right, never before. Nothing
outside of the directory is touched. A server that is killed may leave a hidden
file whose name ends in .part. Whoever reaches the TCP port may send: serve
only in a network that you trust.`,
		Example: `  xroce serve --dir incoming -d eth0
  xroce serve --once -p 7000`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&dir, "dir", ".", "directory that files go to")
	flags.StringVarP(&iface, "device", "d", "", "interface (default: the only one)")
	flags.IntVarP(&port, "port", "p", oob.Port, "TCP port for the exchange")
	flags.IntVarP(&gid, "gid-index", "g", peer.AutoGID, "our GID; -1 for the one that fits")
	flags.BoolVar(&once, "once", false, "end after one file")
	extensions.register(flags)
	device.register(flags)
	return a.command(c, func(ctx context.Context, _ []string) error {
		options, err := device.options(a)
		if err != nil {
			return err
		}
		if iface, err = a.chooseInterface(iface, nil); err != nil {
			return err
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return fmt.Errorf("directory to serve: %w", err)
		}
		defer root.Close()
		dev, err := a.openDevice(iface, options)
		if err != nil {
			return err
		}
		defer dev.Close()
		listener, err := a.listen(ctx, port)
		if err != nil {
			return err
		}
		a.tellWaiting(listener.Addr())
		s := &server{
			app: a, dev: dev, root: root, gid: gid, ext: extensions.Extensions, once: once,
		}
		return s.serve(ctx, listener)
	})
}

// serve accepts until the context ends, and waits for the transfers that run.
func (s *server) serve(ctx context.Context, listener net.Listener) error {
	defer listener.Close()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	var running sync.WaitGroup
	slots := make(chan struct{}, maxTransfers)
	var failed error
	for {
		slots <- struct{}{}
		conn, err := listener.Accept()
		if err != nil {
			if failed = ctx.Err(); failed == nil {
				failed = err
			}
			break
		}
		running.Go(func() {
			defer func() { <-slots }()
			s.receive(ctx, conn)
		})
		if s.once {
			break
		}
	}
	running.Wait()
	if s.once && failed == nil {
		return s.err
	}
	if !s.json {
		s.printf("%d files, %s received\n", s.files, progress.Bytes(s.bytes))
	}
	return failed
}

// receive takes one file.
func (s *server) receive(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	from := conn.RemoteAddr().String()
	result, err := transfer.Receive(ctx, s.dev, conn, transfer.ReceiveConfig{
		Root: s.root, GIDIndex: s.gid, Extensions: s.ext,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = fmt.Errorf("from %s: %w", from, err)
		if !s.once && !errors.Is(err, context.Canceled) {
			s.logger.Error("file not received", "from", from, "error", err.Error())
		}
		return
	}
	s.files++
	s.bytes += result.Size
	if err := s.printTransfer("received", from, result); err != nil {
		s.err = err
	}
}

// transferReport is a transferred file in JSON.
type transferReport struct {
	Path    string  `json:"path"`
	Peer    string  `json:"peer"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	SHA256  string  `json:"sha256"`
	// Extensions are those of the transport that the connection had.
	Extensions string `json:"extensions"`
}

// printTransfer prints one file that was transferred.
func (a *app) printTransfer(verb, peer string, r transfer.Result) error {
	seconds := r.Duration.Seconds()
	if a.json {
		return a.printJSON(transferReport{
			Path: r.Path, Peer: peer, Bytes: r.Size, Seconds: seconds, SHA256: r.SHA256,
			Extensions: r.Extensions.String(),
		})
	}
	preposition := map[string]string{"received": "from", "copied": "to"}[verb]
	a.printf("%s %s %s %s: %d bytes in %.2f s, %.2f Gb/s, SHA-256 %s\n", verb, r.Path,
		preposition, peer, r.Size, seconds, float64(r.Size)*8/1e9/seconds, r.SHA256)
	return nil
}
