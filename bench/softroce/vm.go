package softroce

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest/timeout"
)

// Config says what VM to boot.
type Config struct {
	// Number tells VMs of one network apart: it is in the MAC address.
	Number uint8
	MTU    int            // of the VM's interface: 1500 gives a path MTU of 1024
	Addrs  []netip.Prefix // of the VM's interface, in the order of the GIDs from 1 on

	// Card is the VM's network card, as QEMU calls it; "" for CardVirtio.
	Card string
	// Tap are the queues of a tap, which is then the wire of the VM; it has as many queues.
	// Without any it has one, and Port is its wire.
	Tap []*os.File
	// Program is a file that becomes /usr/bin/xroce of the VM, "" for none. It has to be
	// linked statically. The VM then has no RDMA device of its own, and its interface is
	// called TapName.
	Program string
}

// CardVirtio is a card of virtio. It does its DMA through the kernel's DMA functions, without
// which virtio_net has no zero-copy.
const CardVirtio = "virtio-net-pci"

// Device is the name of the RDMA device in the VM. Its GID 0 is the link-local
// one; those of Config.Addrs follow, IPv4 first.
const Device = "rxe0"

// Interface is the name of the card below it.
const Interface = "eth0"

// qemu is the program that emulates.
const qemu = "qemu-system-x86_64"

// agentPackage is what runs in the guest.
const agentPackage = "xroce/bench/softroce/agent"

// initScript is the guest's first process.
//
//go:embed guest/init
var initScript []byte

// A VM is a running Soft-RoCE host. Safe for concurrent use, but for Reboot.
type VM struct {
	image  Image
	config Config
	dir    string      // for the socket and the root, until Close
	port   *os.File    // our end of the wire, nil for a VM on a tap
	wire   [1]*os.File // the other end of port
	once   sync.Once
	err    error

	// Of one boot.
	qemu    *exec.Cmd
	console *tail
	guest   *guest
	exited  chan struct{} // closed when QEMU has ended
}

// Boot starts a VM and waits until it can be ordered to do something, some
// seconds. It builds the agent, so it must be called within this module, where
// there is Go.
func Boot(ctx context.Context, image Image, c Config) (*VM, error) {
	name, err := ownName()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return nil, fmt.Errorf("softroce: %w", err)
	}
	v := &VM{image: image, config: c, dir: dir}
	if err := v.prepare(ctx); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	if err := v.boot(ctx); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// prepare makes what outlives a boot.
func (v *VM) prepare(ctx context.Context) (err error) {
	if err := makeRoot(ctx, v.root(), v.image, v.config.Program); err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	if v.config.Tap == nil {
		v.port, v.wire[0], err = framePair()
	}
	return err
}

// root is the file with the guest's first root.
func (v *VM) root() string { return filepath.Join(v.dir, "root") }

// Reboot ends the VM, however it is, and boots it anew on the same wire. What was sent to it
// and never read is lost. Its interface has the MTU of Config. Nothing may run in it, nor may
// other methods.
func (v *VM) Reboot(ctx context.Context) error {
	if err := v.halt(); err != nil {
		return err
	}
	if v.wire[0] != nil {
		if err := drain(v.wire[0]); err != nil {
			return err
		}
	}
	return v.boot(ctx)
}

// boot starts QEMU and waits for the agent. The error has what the guest's kernel said.
func (v *VM) boot(ctx context.Context) error {
	v.console = &tail{limit: 16 << 10}
	err := v.start(ctx)
	if text := v.console.String(); err != nil && text != "" {
		err = fmt.Errorf("%w\nthe end of the guest's console:\n%s", err, lastLines(text))
	}
	return err
}

func (v *VM) start(ctx context.Context) error {
	// QEMU connects to a socket that is there already, so nobody has to wait for
	// one to appear.
	socket := filepath.Join(v.dir, "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	defer listener.Close()
	wire := v.config.Tap
	if wire == nil {
		wire = v.wire[:]
	}
	run := exec.Command(qemu, qemuArgs(v.image, v.root(), socket, v.config)...)
	run.ExtraFiles = wire // descriptors from 3 on
	run.Stdout, run.Stderr = v.console, v.console
	// An interrupt from the terminal is for us; we end QEMU.
	run.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := run.Start(); err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	exited := make(chan struct{})
	v.qemu, v.exited = run, exited
	go func() {
		_ = run.Wait() // what it says is on the console
		close(exited)
		listener.Close()
	}()
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	conn, err := listener.Accept()
	if err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("softroce: QEMU did not start: %w", err))
	}
	v.guest = newGuest(conn)
	if err := v.guest.awaitReady(ctx); err != nil {
		return fmt.Errorf("softroce: the guest did not come up: %w", err)
	}
	return nil
}

// qemuArgs is the command line: a PC without anything that is not needed, in
// software emulation whatever the processor could do.
func qemuArgs(image Image, root, socket string, c Config) []string {
	cmdline := fmt.Sprintf("console=ttyS0 quiet loglevel=4 panic=-1 tsc=reliable no_timer_check "+
		"audit=0 apparmor=0 mitigations=off net.ifnames=0 xroce.mtu=%d", c.MTU)
	for _, addr := range c.Addrs {
		cmdline += " xroce.addr=" + addr.String()
	}
	memory := "384"
	if c.Program == "" {
		cmdline += " xroce.rxe=1"
	} else {
		memory = "640" // the frames of a device are 56 MiB, and there may be several
	}
	if n := len(c.Tap); n > 1 {
		cmdline += " xroce.queues=" + strconv.Itoa(n)
	}
	return append([]string{
		"-accel", "tcg,thread=multi", "-machine", "pc,vmport=off,usb=off", "-cpu", "max",
		"-m", memory, "-display", "none", "-vga", "none", "-nodefaults", "-no-reboot",
		"-kernel", image.Kernel, "-initrd", root, "-append", cmdline,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-device", "virtio-serial-pci",
		"-chardev", "socket,id=agent,path=" + socket,
		"-device", "virtserialport,chardev=agent,name=xroce.agent",
		"-device", "virtio-rng-pci",
	}, netArgs(c)...)
}

// HasCard reports whether QEMU has a network card: igb is in it since version 8.
func HasCard(ctx context.Context, card string) (bool, error) {
	// Whether there is one or not, it ends with status 0.
	out, err := exec.CommandContext(ctx, qemu, "-device", card+",help").CombinedOutput()
	if err != nil {
		return false, fmt.Errorf("softroce: %s -device %s,help: %w", qemu, card, err)
	}
	return !bytes.Contains(out, []byte("not found")), nil
}

// netArgs are those of the network card.
func netArgs(c Config) []string {
	card := cmp.Or(c.Card, CardVirtio)
	device := fmt.Sprintf("%s,netdev=net,romfile=,mac=52:54:00:72:78:%02x", card, c.Number)
	if c.Tap == nil {
		return []string{"-netdev", "dgram,id=net,local.type=fd,local.str=3", "-device", device}
	}
	if card == CardVirtio {
		device += ",disable-legacy=on,iommu_platform=on"
	}
	wire := "tap,id=net,vhost=off,fd=3"
	if n := len(c.Tap); n > 1 {
		wire = "tap,id=net,vhost=off,fds=3"
		for i := 1; i < n; i++ {
			wire += ":" + strconv.Itoa(3+i)
		}
		if card == CardVirtio {
			// An interrupt for each direction of each queue, the configuration, and orders.
			device += ",mq=on,vectors=" + strconv.Itoa(2*n+2)
		}
	}
	return []string{"-netdev", wire, "-device", device}
}

// makeRoot writes the guest's first root: what is in the packages, and behind it
// what is ours, with a program of the caller's, if any.
func makeRoot(ctx context.Context, file string, image Image, program string) error {
	agent := filepath.Join(filepath.Dir(file), "agent.bin")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", agent,
		agentPackage)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", agentPackage, err, out)
	}
	files := map[string]string{"usr/bin/agent": agent}
	if program != "" {
		files["usr/bin/xroce"] = program
	}
	base, err := os.Open(image.Root)
	if err != nil {
		return err
	}
	defer base.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, base)
	c := &cpioWriter{w: out, err: err}
	c.file("init", 0o755, initScript)
	for name, from := range files {
		data, readErr := os.ReadFile(from)
		if readErr != nil {
			return errors.Join(readErr, out.Close())
		}
		c.file(name, 0o755, data)
	}
	return errors.Join(c.close(), out.Close())
}

// framePair makes two ends of a wire that carries whole frames.
func framePair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX,
		unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("softroce: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "vm"), os.NewFile(uintptr(fds[1]), "vm"), nil
}

// drain takes all frames from the end of a wire.
func drain(wire *os.File) error {
	raw, err := wire.SyscallConn()
	if err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	if err := raw.Read(func(fd uintptr) bool {
		for err == nil {
			_, _, err = unix.Recvfrom(int(fd), nil, unix.MSG_DONTWAIT)
		}
		return true
	}); err != nil {
		return fmt.Errorf("softroce: %w", err)
	}
	if err != unix.EAGAIN {
		return fmt.Errorf("softroce: %w", err)
	}
	return nil
}

// Port is the network's side of the VM's interface, for NewCable; nil for a VM on a tap.
func (v *VM) Port() *os.File { return v.port }

// Interface is the name of the VM's interface.
func (v *VM) Interface() string {
	if v.config.Program != "" { // it has no RDMA device
		return TapName
	}
	return Interface
}

// Console returns the end of what the guest's kernel printed.
func (v *VM) Console() string { return v.console.String() }

// checkTime is how long a VM may take for a command that does nothing.
const checkTime = 20 * time.Second

// Check returns nil when the VM still obeys, and else ErrGone with the end of what its
// kernel said.
func (v *VM) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(checkTime))
	defer cancel()
	_, _, err := v.Run(ctx, "true")
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrGone) {
		err = fmt.Errorf("%w: it does not answer: %w", ErrGone, err)
	}
	// The agent goes first, and the last that the kernel said comes with the end of QEMU.
	select {
	case <-v.exited:
		err = fmt.Errorf("%w: QEMU has ended: %v", err, v.qemu.ProcessState)
	case <-ctx.Done():
	case <-time.After(timeout.Scaled(closeTime)):
	}
	text := strings.TrimSpace(v.Console())
	if strings.Contains(text, panicLine) {
		return fmt.Errorf("%w: %w\nthe guest's console:\n%s", err, ErrPanic, lastWords(text))
	}
	if text != "" {
		err = fmt.Errorf("%w\nthe end of the guest's console:\n%s", err, lastLines(text))
	}
	return err
}

// panicLine is in what a kernel says at last.
const panicLine = "Kernel panic - not syncing"

// faults begin what a kernel says when it panics, and before.
var faults = []string{
	"BUG:", "Oops", "general protection fault", "------------[ cut here ]", panicLine,
}

// lastWords is the part of a console that tells of a panic: from the first fault on, and its end in
// any case.
func lastWords(console string) string {
	from := len(console) - len(lastLines(console))
	for _, f := range faults {
		if i := strings.Index(console, f); i >= 0 {
			from = min(from, strings.LastIndexByte(console[:i], '\n')+1)
		}
	}
	return console[from:]
}

// closeTime is how long QEMU may take to end, before it is killed or given up.
const closeTime = 3 * time.Second

// Close ends the VM and removes its files. It is idempotent.
func (v *VM) Close() error {
	v.once.Do(func() {
		v.err = v.halt()
		if v.port != nil {
			v.err = errors.Join(v.err, closed(v.port.Close()), v.wire[0].Close())
		}
		v.err = errors.Join(v.err, os.RemoveAll(v.dir))
	})
	return v.err
}

// halt ends QEMU. It is idempotent.
func (v *VM) halt() (err error) {
	if v.guest != nil {
		err = v.guest.close()
	}
	if v.qemu != nil {
		_ = v.qemu.Process.Signal(unix.SIGTERM) // it may have ended
		select {
		case <-v.exited:
		case <-time.After(closeTime):
			_ = v.qemu.Process.Kill()
			<-v.exited
		}
	}
	return err
}

// A tail keeps the end of what is written to it. Safe for concurrent use.
type tail struct {
	limit int // bytes kept

	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if extra := t.buf.Len() - t.limit; extra > 0 {
		t.buf.Next(extra)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(t.buf.String(), "\r", "")
}
