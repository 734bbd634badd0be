package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob"
	"xroce/roce"
)

// serveFlags say where files come from and go to.
type serveFlags struct {
	dir, iface, address string
	port                int
	tokenFile           string
	insecure, once      bool
	mode                string
	file, total         sizeFlag
	store               transfer.StoreConfig
}

func (f *serveFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "dir", "", "directory that files go to (needed)")
	flags.StringVarP(&f.iface, "device", "d", "", "interface (default: the only one)")
	flags.StringVar(&f.address, "listen", "", "address of the device (default: all it has)")
	flags.IntVarP(&f.port, "port", "p", oob.Port, "port of rdma_cm to wait at")
	flags.StringVar(&f.tokenFile, "token-file", "", tokenUsage)
	flags.BoolVar(&f.insecure, "insecure", false, "take files from whoever reaches the port")
	flags.BoolVar(&f.once, "once", false, "end after one connection that sent something")
	flags.BoolVar(&f.store.Overwrite, "overwrite", false, "replace files that are there")
	flags.BoolVar(&f.store.Read, "allow-read", false, "send files, too, to who may send")
	flags.BoolVar(&f.store.Dotfiles, "dotfiles", false, "take names that begin with a dot")
	flags.StringVar(&f.mode, "mode-mask", fmt.Sprintf("%04o", transfer.DefaultMode),
		"permissions that a file may get, less the umask")
	flags.Var(&f.file, "max-file", "largest file, as 20G (default: what there is room for)")
	flags.Var(&f.total, "max-total", "most of all files together (default: the same)")
	flags.IntVar(&f.store.MaxFiles, "max-files", 0, "how many files are taken, 0 for any number")
	flags.DurationVar(&f.store.Keep, "keep-partial", 24*time.Hour,
		"how long a part is kept whose sender was lost, for it to go on; 0 for not at all")
}

// check completes the flags, or tells what is wrong with them.
func (f *serveFlags) check(token transfer.Token) error {
	if f.dir == "" {
		return usagef("--dir is needed: a directory that files go to")
	}
	mode, err := strconv.ParseUint(f.mode, 8, 32)
	if err != nil || mode == 0 || mode > 0o777 {
		return usagef("--mode-mask %q is not in 0001..0777", f.mode)
	}
	if f.store.MaxFiles < 0 {
		return usagef("--max-files %d is negative", f.store.MaxFiles)
	}
	f.store.Mode = fs.FileMode(mode)
	f.store.MaxFile, f.store.MaxTotal = int64(f.file), int64(f.total)
	if f.store.Keep < 0 {
		return usagef("--keep-partial %v is negative", f.store.Keep)
	}
	if token == nil && !f.insecure {
		return errOpen
	}
	return nil
}

// places are where to wait.
func (f *serveFlags) places() ([]netip.AddrPort, error) {
	if f.port < 1 || f.port > 65535 {
		return nil, usagef("port %d is not in 1..65535", f.port)
	}
	addrs := []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	if f.address != "" {
		addr, err := netip.ParseAddr(f.address)
		if err != nil {
			return nil, usagef("--listen %q is no address", f.address)
		}
		addrs = []netip.Addr{addr.Unmap()}
	}
	var at []netip.AddrPort
	for _, addr := range addrs {
		at = append(at, netip.AddrPortFrom(addr, uint16(f.port)))
	}
	return at, nil
}

// errOpen refuses to take files from everybody.
var errOpen = usagef("whoever reaches the device could send files: give --token-file FILE here " +
	"and to 'xroce copy' (make one with 'umask 077; head -c 32 /dev/urandom | base64 > FILE'), " +
	"or --insecure")

func (a *app) serveCommand() *cobra.Command {
	var device deviceFlags
	var f serveFlags
	extensions := newExtensionsFlag()
	c := &cobra.Command{
		Use:   "serve",
		Short: "Receive files from 'xroce copy'",
		Long: `Receive files that 'xroce copy' sends, as messages, until Ctrl-C. A file appears
under its name when it is whole and its SHA-256 is right, never before. Nothing
outside of the directory is touched, no symbolic link in it is followed, no file
replaced, no hidden one made, no file sent back, unless the flags say so.

Who may send knows the token: at least 16 bytes in a file of your own, or in
XROCE_TOKEN, at both ends. It is not sent, and what is said once is of no use to who
listens, but file and names are not encrypted. Without a token everybody can send who
reaches the device, and --insecure has to say so.

What there is of a file whose sender was lost is kept for a day, hidden and for no other
user to read, as .xroce-*.part: the sender goes on there when it comes back, also when
the server was killed meanwhile, once both agree on what is there by its SHA-256. At
most 16 such parts are kept, and they make room for files that then fit: first those of
the host that has most of them. One whose sender comes back and has to wait for room
stays.

At most 8 connections send at a time. When there is no token, 4 of them may be of
one host, and one that was slower than 1 MiB/s in the last minute gives way to another
that finds no place, or no room on the disk, unless all of its file has come. At most
32 connections of one host wait for its end to hang up. Over IPv6 those of one /64
count as one host.`,
		Example: `  umask 077; head -c 32 /dev/urandom | base64 > token  # take it to the sender
  xroce serve --dir incoming -d eth0 --token-file token
  xroce serve --dir incoming --once -p 7000 --listen 192.0.2.2 --insecure`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	f.register(flags)
	extensions.register(flags)
	device.register(flags)
	return a.command(c, func(ctx context.Context, _ []string) error {
		options, err := device.options(a)
		if err != nil {
			return err
		}
		token, err := a.token(f.tokenFile)
		if err != nil {
			return err
		}
		if err := f.check(token); err != nil {
			return err
		}
		return a.serve(ctx, &f, options, transfer.ReceiveConfig{Token: token},
			extensions.Extensions)
	})
}

// serve opens what a server needs and runs it.
func (a *app) serve(
	ctx context.Context, f *serveFlags, o engine.Options, c transfer.ReceiveConfig,
	extensions roce.Extensions,
) (err error) {
	at, err := f.places()
	if err != nil {
		return err
	}
	iface, err := a.chooseInterface(f.iface, netip.Addr{})
	if err != nil {
		return err
	}
	if c.Store, err = transfer.OpenStore(f.dir, f.store); err != nil {
		return fmt.Errorf("directory to serve: %w", userfile.Failed(err))
	}
	defer c.Store.Close()
	if err := a.clear(ctx, c.Store); err != nil {
		return err
	}
	dev, err := a.openDevice(iface, o)
	if err != nil {
		return err
	}
	defer dev.Close()
	station, err := transfer.OpenStation(dev, extensions, cm.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, station.Close()) }()
	listeners, err := station.Listen(at)
	if err != nil {
		return err
	}
	a.warnLinkDown(iface)
	a.tellServing(f, at, dev, c.Token != nil)
	return newServer(a, station, c, f.once).run(ctx, listeners)
}

// clear removes what killed servers left. What of that cannot be looked at, which may be a
// directory of somebody else, keeps nobody from sending files. The error is that of the
// context.
func (a *app) clear(ctx context.Context, store *transfer.Store) error {
	n, err := store.Clear(ctx)
	if n > 0 {
		a.logger.Warn("removed what killed servers left", "files", n)
	}
	if err != nil && ctx.Err() == nil {
		a.logger.Warn("not all that killed servers may have left was looked at", "error",
			err.Error())
	}
	return ctx.Err()
}

// tellServing tells that files can come, from where, and to where.
func (a *app) tellServing(f *serveFlags, at []netip.AddrPort, dev *engine.Device, token bool) {
	who := "from everybody"
	if token {
		who = "with the token"
	}
	where := fmt.Sprintf("port %d", f.port)
	if f.address != "" {
		where = at[0].String()
	}
	a.logger.Info("listening", "address", at[0].String())
	if a.listening != nil {
		a.listening(net.TCPAddrFromAddrPort(at[0]))
	}
	a.tellReady(net.TCPAddrFromAddrPort(at[0]), fmt.Sprintf(
		" for files to %s, %s, at %s, device %s", f.dir, who, where, dev.Name()))
}

// warnLinkDown warns of an interface that nothing can come by.
func (a *app) warnLinkDown(iface string) {
	list, err := a.machine.Interfaces()
	if err != nil {
		return // of a machine that does not say nothing is known
	}
	switch i := host.Find(list, iface); {
	case i == nil:
	case !i.Up:
		a.logger.Warn("the interface is down, nothing will come", "device", iface,
			"remedy", "ip link set "+iface+" up")
	case !i.Carrier:
		a.logger.Warn("the link is down, nothing will come", "device", iface,
			"remedy", "look at the cable and the other end")
	}
}

// tokenEnv is the environment variable that may have the token.
const tokenEnv = "XROCE_TOKEN"

const tokenUsage = "file with the secret of both ends (default: " + tokenEnv + ")"

// token reads the token that was given, nil for none.
func (a *app) token(file string) (transfer.Token, error) {
	if file != "" {
		token, err := transfer.ReadToken(file)
		return token, userfile.Failed(err)
	}
	text, ok := os.LookupEnv(tokenEnv)
	if !ok {
		return nil, nil
	}
	token, err := transfer.ParseToken([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tokenEnv, err)
	}
	return token, nil
}
