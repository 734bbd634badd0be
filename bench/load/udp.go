package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"xroce/bench/worker"
)

// Datagrams of UDP, as a Go program sends them, and one at a time in blocking calls.

// udpModes are the works over UDP.
var udpModes = map[string]func(worker.Options, udpEnds, func() error) (done, error){
	"post":  udpPost,
	"take":  udpTake,
	"knock": udpKnock,
	"ping":  udpPing,
	"echo":  udpEcho,
}

// udpEnds are the addresses of both ends.
type udpEnds struct{ local, remote netip.AddrPort }

// UDP does the work of o.Mode with datagrams of o.Message bytes.
func UDP(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	mode, ok := udpModes[o.Mode]
	if !ok {
		return r, fmt.Errorf("load: no mode %q over UDP", o.Mode)
	}
	ends, err := parseEnds(o)
	if err != nil {
		return r, err
	}
	d, err := mode(o, ends, func() error { return worker.Ready(in, out) })
	if err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	r = report(o, d.window, d.total, "UDP of Go", nil)
	r.Bytes = d.window.Packets() * uint64(o.Message)
	r.RTT = d.rtt
	return r, nil
}

// parseEnds reads the addresses of the options.
func parseEnds(o worker.Options) (e udpEnds, err error) {
	local, err := netip.ParseAddr(o.Local)
	if err != nil {
		return e, fmt.Errorf("load: %w", err)
	}
	remote, err := netip.ParseAddr(o.Remote)
	if err != nil {
		return e, fmt.Errorf("load: %w", err)
	}
	if !local.Is4() || !remote.Is4() || o.Message < udpLeast {
		return e, fmt.Errorf("load: %d bytes from %s to %s: want IPv4 and %d at least", o.Message,
			local, remote, udpLeast)
	}
	return udpEnds{netip.AddrPortFrom(local, udpPort), netip.AddrPortFrom(remote, udpPort)}, nil
}

const (
	udpLeast  = 8 // bytes of a datagram: its number
	udpPort   = 7472
	udpBuffer = 4 << 20               // bytes of a receive buffer, as asked for
	udpRetry  = 50 * time.Millisecond // how long a datagram is waited for
)

// udpTicks is how many datagrams are sent between two looks at the clock.
const udpTicks = 16

// dialUDP is a connected socket of package net.
func dialUDP(e udpEnds) (*net.UDPConn, error) {
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(e.local)}
	c, err := dialer.DialContext(context.Background(), "udp4", e.remote.String())
	if err != nil {
		return nil, err
	}
	u := c.(*net.UDPConn)
	return u, u.SetReadBuffer(udpBuffer)
}

// udpPost sends as fast as it can. What the kernel has no room for is not sent.
func udpPost(o worker.Options, e udpEnds, ready func() error) (d done, err error) {
	c, err := dialUDP(e)
	if err != nil {
		return d, err
	}
	defer c.Close()
	if err := ready(); err != nil {
		return d, err
	}
	data := make([]byte, o.Message)
	d.window = worker.NewWindow(o)
	end := o.Warmup + o.Window + overtime
	for now := d.window.Now(); d.window.Tick(now, d.total) || now < end; now = d.window.Now() {
		for range udpTicks {
			if _, err := c.Write(data); err == nil {
				d.total++
			} else if !passes(err) {
				return d, err
			}
		}
	}
	return d, nil
}

// passes reports whether an error is of a datagram that was lost here, or of one that nobody took.
func passes(err error) bool {
	return errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EAGAIN) ||
		errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EINTR)
}

// udpTake counts what comes, until nothing comes any more.
func udpTake(o worker.Options, e udpEnds, ready func() error) (d done, err error) {
	c, err := dialUDP(e)
	if err != nil {
		return d, err
	}
	defer c.Close()
	if err := ready(); err != nil {
		return d, err
	}
	data := make([]byte, o.Message+1)
	w := worker.NewWindow(o)
	d.window = w
	var last time.Duration
	err = os.ErrDeadlineExceeded // none is set
	for {
		if err != nil {
			if err := c.SetReadDeadline(time.Now().Add(udpRetry)); err != nil {
				return d, err
			}
		}
		now := w.Now()
		open := w.Tick(now, d.total)
		var n int
		n, err = c.Read(data)
		switch {
		case err == nil && n == o.Message:
			d.total++
			last = now
		case err == nil || passes(err):
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return d, err
		case !open && now > last+worker.Quiet:
			return d, nil
		}
	}
}

// udpKnock is ready when the other end has said that nobody is there who takes what was sent. It
// asks no longer than the window.
func udpKnock(o worker.Options, e udpEnds, ready func() error) (d done, err error) {
	fd, err := blockingUDP(e)
	if err != nil {
		return d, err
	}
	defer unix.Close(fd)
	data := make([]byte, o.Message)
	d.window = worker.NewWindow(o)
	for d.window.Tick(d.window.Now(), 0) {
		// Routes and neighbours of a tunnel that is being made may be missing.
		_, sendErr := unix.Write(fd, data)
		_, err := unix.Read(fd, data)
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(sendErr, unix.ECONNREFUSED) {
			return d, ready()
		}
	}
	return d, fmt.Errorf("%v says nothing for %v", e.remote, o.Window)
}

// blockingUDP is a connected socket whose calls block, without the poller of the runtime.
func blockingUDP(e udpEnds) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	address := func(a netip.AddrPort) unix.Sockaddr {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	wait := unix.NsecToTimeval(udpRetry.Nanoseconds())
	err = errors.Join(unix.Bind(fd, address(e.local)), unix.Connect(fd, address(e.remote)),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// udpPing sends a datagram and waits for its echo, again and again. One that is lost counts for
// nothing.
func udpPing(o worker.Options, e udpEnds, ready func() error) (d done, err error) {
	fd, err := blockingUDP(e)
	if err != nil {
		return d, err
	}
	defer unix.Close(fd)
	if err := ready(); err != nil {
		return d, err
	}
	data := make([]byte, o.Message)
	hist := newRoundTrips()
	w := worker.NewWindow(o)
	d.window = w
	number := uint64(0)
	for w.Tick(w.Now(), d.total) {
		number++
		binary.BigEndian.PutUint64(data, number)
		sent := w.Now()
		if _, err := unix.Write(fd, data); err != nil && !passes(err) {
			return d, err
		}
		switch err := awaitEcho(fd, data, number); {
		case err != nil && !passes(err):
			return d, err
		case err == nil:
			d.total++
			if w.Open() {
				_ = hist.RecordValue((w.Now() - sent).Nanoseconds())
			}
		}
	}
	d.rtt = roundTrips(hist)
	return d, nil
}

// awaitEcho waits for the datagram with a number: one before it may be late. A signal ends a read
// that has a timeout, and is no loss.
func awaitEcho(fd int, data []byte, number uint64) error {
	for {
		if _, err := unix.Read(fd, data); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return err
		}
		if binary.BigEndian.Uint64(data) == number {
			return nil
		}
	}
}

// udpEcho sends back what comes, until nothing comes any more.
func udpEcho(o worker.Options, e udpEnds, ready func() error) (d done, err error) {
	fd, err := blockingUDP(e)
	if err != nil {
		return d, err
	}
	defer unix.Close(fd)
	if err := ready(); err != nil {
		return d, err
	}
	data := make([]byte, o.Message)
	w := worker.NewWindow(o)
	d.window = w
	var last time.Duration
	for {
		now := w.Now()
		if !w.Tick(now, d.total) && now > last+worker.Quiet {
			return d, nil
		}
		if _, err := unix.Read(fd, data); err != nil {
			if passes(err) {
				continue
			}
			return d, err
		}
		last = now
		d.total++
		if _, err := unix.Write(fd, data); err != nil && !passes(err) {
			return d, err
		}
	}
}
