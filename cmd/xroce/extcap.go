package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/dump"
	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine/capture/filter"
	"xroce/engine/control"
)

// extcapFlags are what Wireshark says to a program that captures for it (extcap(4)).
type extcapFlags struct {
	interfaces, dlts, config, capture bool
	iface, fifo, filter, version      string
	install                           bool
	dir                               string
}

// extcapPrefix is before the name of a device that Wireshark is told of.
const extcapPrefix = "xroce-"

func (a *app) extcapCommand() *cobra.Command {
	var f extcapFlags
	c := &cobra.Command{
		Use:   "extcap",
		Short: "Give Wireshark the devices of running xroce programs",
		Long: `Give Wireshark, and tshark, the devices of running xroce programs as interfaces to
capture on. Wireshark starts this itself (extcap(4)), when --install has put a small script into
the user's directory of such programs. Then 'tshark -D' lists the devices as xroce-eth0,
and the capture filter is that of 'xroce tcpdump'. Wireshark before 4.2 knows but the
directory that 'tshark -G folders' calls "Extcap path": name it with --dir.`,
		Example: `  xroce extcap --install
  sudo xroce extcap --install --dir /usr/lib/x86_64-linux-gnu/wireshark/extcap
  tshark -D
  tshark -i xroce-eth0 -f 'verdict == dropped'`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.BoolVar(&f.install, "install", false, "have Wireshark of this user start this program")
	flags.StringVar(&f.dir, "dir", "",
		"where to install it (default ~/.local/lib/wireshark/extcap)")
	flags.BoolVar(&f.interfaces, "extcap-interfaces", false, "list devices")
	flags.BoolVar(&f.dlts, "extcap-dlts", false, "tell the link type")
	flags.BoolVar(&f.config, "extcap-config", false, "tell what can be set: nothing")
	flags.BoolVar(&f.capture, "capture", false, "capture")
	flags.StringVar(&f.iface, "extcap-interface", "", "the device")
	flags.StringVar(&f.fifo, "fifo", "", "where to write packets")
	flags.StringVar(&f.filter, "extcap-capture-filter", "", "which packets")
	flags.StringVar(&f.version, "extcap-version", "", "of Wireshark")
	return a.command(c, func(ctx context.Context, _ []string) error {
		switch {
		case f.install:
			return a.installExtcap(f.dir)
		case f.interfaces:
			return a.extcapInterfaces(ctx)
		case f.iface == "" && (f.dlts || f.config || f.capture):
			return usagef("--extcap-interface is missing")
		case f.dlts:
			a.printf("dlt {number=1}{name=EN10MB}{display=Ethernet}\n")
			return nil
		case f.config:
			return nil
		case f.capture:
			return a.extcapCapture(ctx, f)
		case f.filter != "": // is it right?
			if _, err := filter.Compile(f.filter); err != nil {
				a.printf("%v\n", err)
			}
			return nil
		}
		return usagef("this is for Wireshark to start: see --install")
	})
}

// extcapInterfaces lists devices in the form of extcap.
func (a *app) extcapInterfaces(ctx context.Context) error {
	a.printf("extcap {version=%s}{help=https://www.wireshark.org/docs/man-pages/extcap.html}\n",
		version)
	answers, err := control.Ask(ctx, a.runtime, 0, 0, false)
	if err = a.heard(ctx, true, err); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, answer := range answers {
		for i := range answer.Devices {
			name := answer.Devices[i].Device
			// Braces would end the value.
			if seen[name] || strings.ContainsAny(name, "{}") || name != plain.Text(name) {
				continue
			}
			seen[name] = true
			a.printf("interface {value=%s%s}{display=RoCE in user space on %s (process %d)}\n",
				extcapPrefix, name, name, answer.PID)
		}
	}
	return nil
}

// extcapCapture writes the packets of a device to the pipe of Wireshark, until that is
// closed.
func (a *app) extcapCapture(ctx context.Context, f extcapFlags) error {
	name, ours := strings.CutPrefix(f.iface, extcapPrefix)
	if !ours || f.fifo == "" {
		return usagef("--capture needs --extcap-interface %sIFACE and --fifo", extcapPrefix)
	}
	from, err := control.Watch(ctx, a.runtime, control.Query{Device: name, Filter: f.filter})
	if err != nil {
		return err
	}
	defer from.Close()
	fifo, err := openFIFO(ctx, f.fifo)
	if err != nil {
		return err
	}
	defer fifo.Close()
	to, err := dump.NewWriter(fifo, name, 0)
	if err != nil {
		return err
	}
	a.waiting.Store(true)
	if a.ready != nil {
		a.ready()
	}
	return a.runDump(ctx, from, to, 0)
}

// fifoPatience is how long Wireshark may take to open its end.
const fifoPatience = 10 * time.Second

// openFIFO opens a pipe that another program is about to read. To open it without waiting
// fails as long as nobody does.
func openFIFO(ctx context.Context, name string) (*os.File, error) {
	end := time.Now().Add(fifoPatience)
	for {
		file, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if !errors.Is(err, unix.ENXIO) || time.Now().After(end) {
			return file, userfile.Failed(err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// installExtcap writes the script that Wireshark starts, which starts us.
func (a *app) installExtcap(dir string) error {
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		dir = filepath.Join(home, ".local", "lib", "wireshark", "extcap")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return userfile.Failed(err)
	}
	name := filepath.Join(dir, "xroce")
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is there, and is no file", name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return userfile.Failed(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s extcap \"$@\"\n", shellQuote(executable()))
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		return userfile.Failed(err)
	}
	a.printf("%s\n", name)
	return nil
}

// shellQuote is a word for a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
