package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"xroce/bench/softroce"
	"xroce/engine/capture"
)

// The addresses, from the blocks for documentation (RFC 5737, RFC 3849). The GID
// of the IPv4 address has index 1 at both ends, that of the IPv6 address 2.
var (
	ourAddrs = []netip.Prefix{
		netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64"),
	}
	theirAddrs = []netip.Prefix{
		netip.MustParsePrefix("192.0.2.2/24"), netip.MustParsePrefix("2001:db8::2/64"),
	}
)

// address chooses the address of a family, and the index of its GID.
func address(addrs []netip.Prefix, family int) (host string, gid int) {
	if family == 6 {
		return addrs[1].Addr().String(), 2
	}
	return addrs[0].Addr().String(), 1
}

// interfaceMTU is the MTU of the interface that gives a path MTU.
func interfaceMTU(pathMTU int) int {
	if pathMTU == 4096 {
		return 4200
	}
	return 1500
}

// A lab is the VM, the namespace and the cable between them, with what is
// recorded of a run.
type lab struct {
	image softroce.Image
	vm    *softroce.VM
	site  *softroce.Site
	cable *softroce.Cable
	mtu   int    // of both interfaces
	dir   string // for our program and the capture
	xroce string // our program

	file    *os.File
	writer  *capture.Writer
	firsts  []first         // which packets of the capture are whose
	lacking map[string]bool // commands that xroce does not have
}

// first says with which packet of the capture a case begins, from 1 on.
type first struct {
	packet uint64
	name   string
}

// captureName is the capture's file in the directory of a lab.
const captureName = "interop.pcapng"

// openLab builds and boots everything, but for xroce when that is given. Nothing is
// left of a failed try.
func openLab(ctx context.Context, xroce string) (l *lab, err error) {
	l = &lab{mtu: interfaceMTU(1024), lacking: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if err := softroce.Sweep(); err != nil {
		return l, err
	}
	cache, err := softroce.CacheDir()
	if err != nil {
		return l, err
	}
	if l.image, err = softroce.Build(ctx, cache, io.Discard); err != nil {
		return l, err
	}
	if l.dir, err = os.MkdirTemp("", "xroce-interop-"); err != nil {
		return l, err
	}
	if err := l.program(ctx, xroce); err != nil {
		return l, err
	}
	if l.file, err = os.Create(filepath.Join(l.dir, captureName)); err != nil {
		return l, err
	}
	if l.writer, err = capture.NewWriter(l.file, softroce.TapName); err != nil {
		return l, err
	}
	if l.site, err = softroce.NewSite(ctx, l.mtu, ourAddrs...); err != nil {
		return l, err
	}
	l.vm, err = softroce.Boot(ctx, l.image, softroce.Config{
		Number: 2, MTU: l.mtu, Addrs: theirAddrs,
	})
	if err != nil {
		return l, err
	}
	l.cable = softroce.NewCable(l.site.Port(), l.vm.Port())
	return l, nil
}

// program takes the xroce that is given, or builds one.
func (l *lab) program(ctx context.Context, given string) (err error) {
	if given != "" {
		l.xroce, err = filepath.Abs(given)
		return err
	}
	l.xroce = filepath.Join(l.dir, "xroce")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", l.xroce, "xroce/cmd/xroce")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// close removes all that openLab made.
func (l *lab) close() error {
	var err error
	if l.cable != nil {
		err = l.cable.Close()
	}
	if l.vm != nil {
		err = errors.Join(err, l.vm.Close())
	}
	if l.site != nil {
		err = errors.Join(err, l.site.Close())
	}
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	if l.dir != "" {
		err = errors.Join(err, os.RemoveAll(l.dir))
	}
	return err
}

// setMTU gives both ends of the cable an MTU. rxe0 follows its interface.
func (l *lab) setMTU(ctx context.Context, mtu int) error {
	if mtu == l.mtu {
		return nil
	}
	if err := l.site.SetMTU(ctx, mtu); err != nil {
		return err
	}
	if err := setMTUIn(ctx, l.vm, mtu); err != nil {
		return err
	}
	l.mtu = mtu
	return nil
}

// setMTUIn gives the interface of a VM an MTU.
func setMTUIn(ctx context.Context, vm *softroce.VM, mtu int) error {
	command := fmt.Sprintf("ip link set eth0 mtu %d", mtu)
	if out, status, err := vm.Run(ctx, "/usr/bin/"+command); err != nil || status != 0 {
		return fmt.Errorf("in the VM: %s: status %d, %w\n%s", command, status, err, out)
	}
	return nil
}

// has reports whether xroce has a command with a flag.
func (l *lab) has(ctx context.Context, command []string, flag string) bool {
	key := strings.Join(append(command, flag), " ")
	if lacks, known := l.lacking[key]; known {
		return !lacks
	}
	args := append(append([]string{}, command...), "--help")
	out, err := exec.CommandContext(ctx, l.xroce, args...).CombinedOutput()
	// The help of a command names it in the line behind "Usage:".
	usage := "\n  xroce " + strings.Join(command, " ") + " "
	has := err == nil && strings.Contains(string(out), usage) &&
		strings.Contains(string(out), flag)
	l.lacking[key] = !has
	return has
}

// keep copies the capture and the output of failed cases to a directory.
func (l *lab) keep(dir string, outcomes []Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(l.dir, captureName))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, captureName), data, 0o644); err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Verdict != failed {
			continue
		}
		name := strings.ReplaceAll(o.Case.Name(), "/", "-") + ".log"
		text := o.Reason + "\n" + o.Output
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
