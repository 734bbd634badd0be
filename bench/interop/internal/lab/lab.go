package lab

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

	"xroce/bench/interop/internal/cases"
	"xroce/bench/softroce"
)

// A Config says what the ends of the cable are. The zero value is xroce in a namespace and
// Soft-RoCE in a VM.
type Config struct {
	Xroce string // the program, "" for that of this source
	// Card is the network card of a VM that xroce runs in, as QEMU calls it; "" for the
	// namespace. The VM's kernel is that of Debian's backports.
	Card   string
	Queues int // of that card
	// Self makes the other end a VM like that, too, with xroce.
	Self bool
}

// ConfigOf is what a case needs.
func ConfigOf(c cases.Case, xroce string) Config {
	return Config{Xroce: xroce, Card: c.Card, Queues: cases.CardQueues(c), Self: c.Self}
}

// A Lab is the VM, the namespace and the cable between them, with what is recorded of a
// run. Not for concurrent use.
type Lab struct {
	Image   softroce.Image
	VM      *softroce.VM    // of the peer
	Cable   *softroce.Cable // between xroce, which is end A, and the VM
	Capture *Capture        // of what is on the cable

	own      *softroce.VM // where xroce runs, nil for the namespace
	ownImage softroce.Image
	sites    []*softroce.Site // the namespace, or those that have the wires of VMs
	mtu      int              // of both interfaces
	dir      string           // for our program, its memory and the capture
	xroce    string           // our program
	lacking  map[string]bool  // commands that xroce does not have
}

// Open builds and boots everything, but for xroce when that is given. Nothing is
// left of a failed try.
func Open(ctx context.Context, c Config) (l *Lab, err error) {
	l = &Lab{mtu: cases.InterfaceMTU(1024), lacking: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := softroce.Sweep(); err != nil {
		return l, err
	}
	if l.dir, err = os.MkdirTemp("", "xroce-interop-"); err != nil {
		return l, err
	}
	if l.xroce, err = Program(ctx, l.dir, c.Xroce); err != nil {
		return l, err
	}
	if l.Capture, err = newCapture(l.dir); err != nil {
		return l, err
	}
	ours, err := l.ours(ctx, c)
	if err != nil {
		return l, err
	}
	theirs, err := l.theirs(ctx, c)
	if err != nil {
		return l, errors.Join(err, ours.Close())
	}
	l.Cable = softroce.NewCable(ours, theirs)
	return l, nil
}

// image builds an image, or finds it in the cache.
func image(ctx context.Context, k softroce.Kernel) (softroce.Image, error) {
	cache, err := softroce.CacheDir()
	if err != nil {
		return softroce.Image{}, err
	}
	return softroce.Build(ctx, cache, k, io.Discard)
}

// ours makes our end, and returns its port for the cable.
func (l *Lab) ours(ctx context.Context, c Config) (port *os.File, err error) {
	if c.Card != "" {
		l.own, port, err = l.card(ctx, c, 1, cases.OurAddrs)
		return port, err
	}
	site, err := softroce.NewSite(ctx, 1, l.mtu, cases.OurAddrs...)
	if err != nil {
		return nil, err
	}
	l.sites = append(l.sites, site)
	return site.Port(), nil
}

// theirs makes the other end, and returns its port for the cable.
func (l *Lab) theirs(ctx context.Context, c Config) (port *os.File, err error) {
	if c.Self {
		l.Image = l.ownImage
		l.VM, port, err = l.card(ctx, c, 2, cases.TheirAddrs)
		return port, err
	}
	if l.Image, err = image(ctx, softroce.KernelHere); err != nil {
		return nil, err
	}
	l.VM, err = softroce.Boot(ctx, l.Image, softroce.Config{
		Number: 2, MTU: l.mtu, Addrs: cases.TheirAddrs,
	})
	if err != nil {
		return nil, err
	}
	return l.VM.Port(), nil
}

// card boots a VM for xroce, and returns its port for the cable.
func (l *Lab) card(
	ctx context.Context, c Config, number uint8, addrs []netip.Prefix,
) (*softroce.VM, *os.File, error) {
	var err error
	if l.ownImage, err = image(ctx, softroce.KernelBackports); err != nil {
		return nil, nil, err
	}
	site, err := softroce.NewSite(ctx, max(1, c.Queues), l.mtu)
	if err != nil {
		return nil, nil, err
	}
	l.sites = append(l.sites, site)
	vm, err := softroce.Boot(ctx, l.ownImage, softroce.Config{
		Number: number, MTU: l.mtu, Addrs: addrs, Card: c.Card, Tap: site.Queues(),
		Program: l.xroce,
	})
	if err != nil {
		return nil, nil, err
	}
	port, err := site.Socket()
	if err != nil {
		err = errors.Join(err, vm.Close())
	}
	return vm, port, err
}

// Close removes all that Open made.
func (l *Lab) Close() error {
	var err error
	if l.Cable != nil {
		err = l.Cable.Close()
	}
	for _, vm := range l.VMs() {
		err = errors.Join(err, vm.Close())
	}
	for _, site := range l.sites {
		err = errors.Join(err, site.Close())
	}
	if l.Capture != nil {
		err = errors.Join(err, l.Capture.close())
	}
	if l.dir != "" {
		err = errors.Join(err, os.RemoveAll(l.dir))
	}
	return err
}

// Images names the kernels of the VMs.
func (l *Lab) Images() []string {
	if l.own == nil {
		return []string{l.Image.Name}
	}
	return []string{l.Image.Name, l.ownImage.Name}
}

// VMs are all that there are, xroce's at last.
func (l *Lab) VMs() []*softroce.VM {
	var vms []*softroce.VM
	for _, vm := range []*softroce.VM{l.VM, l.own} {
		if vm != nil {
			vms = append(vms, vm)
		}
	}
	return vms
}

// Hosts are the VMs as what a case may die with.
func (l *Lab) Hosts() []Host {
	var hosts []Host
	for _, vm := range l.VMs() {
		hosts = append(hosts, Host{vm, &l.mtu})
	}
	return hosts
}

// SetMTU gives both ends of the cable an MTU. rxe0 follows its interface.
func (l *Lab) SetMTU(ctx context.Context, mtu int) error {
	if mtu == l.mtu {
		return nil
	}
	for _, site := range l.sites {
		if err := site.SetMTU(ctx, mtu); err != nil {
			return err
		}
	}
	for _, vm := range l.VMs() {
		if err := setMTUIn(ctx, vm, mtu); err != nil {
			return err
		}
	}
	l.mtu = mtu
	return nil
}

// Ours starts xroce. It is interrupted when the context ends.
func (l *Lab) Ours(ctx context.Context, args []string) (End, error) {
	if l.own != nil {
		e, err := InVM(l.own, "xroce", "exec xroce "+quoted(args))
		return e, err
	}
	ctx, cancel := context.WithCancel(ctx)
	p, err := Start(l.sites[0].Command(ctx, append([]string{l.xroce}, args...)...))
	if err != nil {
		cancel()
		return End{}, err
	}
	return endOf("xroce", p, cancel), nil
}

// Script runs lines of a shell where xroce is, in its VM, and returns what they printed. It is an
// error when the last one fails.
func (l *Lab) Script(ctx context.Context, lines string) (output string, err error) {
	output, status, err := l.own.Run(ctx, lines)
	if err == nil && status != 0 {
		err = fmt.Errorf("a script ended with status %d: %s", status, output)
	}
	return output, err
}

// Has reports whether xroce has a command with a flag.
func (l *Lab) Has(ctx context.Context, command []string, flag string) bool {
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

// Keep copies the capture and the output of failed cases to a directory.
func (l *Lab) Keep(dir string, outcomes []cases.Outcome) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := l.Capture.copyTo(dir); err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Verdict != cases.Failed {
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
