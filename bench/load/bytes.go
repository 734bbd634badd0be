package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"xroce/bench/worker"
)

// Connections that carry bytes: streams of ours, and the TCP of Go beside them. Both do the same
// work.

// tcpModes are the works over TCP.
var tcpModes = map[string]struct {
	listens bool
	run     func(net.Conn, worker.Options) (done, error)
}{
	"post": {false, bytesOut},
	"take": {true, bytesIn},
	"ping": {false, bytesPing},
	"echo": {true, bytesEcho},
}

// TCP does the work of o.Mode over a connection of package net, with an XDP program on the
// interface that lets everything pass.
func TCP(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	mode, ok := tcpModes[o.Mode]
	if !ok {
		return r, fmt.Errorf("load: no mode %q over TCP", o.Mode)
	}
	if o.Interface != "" {
		p, err := passAll(o.Interface)
		if err != nil {
			return r, err
		}
		defer p.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Warmup+o.Window+messageSpare)
	defer cancel()
	var l net.Listener
	if mode.listens {
		var config net.ListenConfig
		if l, err = config.Listen(ctx, "tcp", net.JoinHostPort(o.Local, tcpPort)); err != nil {
			return r, fmt.Errorf("load: %w", err)
		}
		defer l.Close()
	}
	if err := worker.Ready(in, out); err != nil {
		return r, err
	}
	var c net.Conn
	if l != nil {
		c, err = l.Accept()
	} else {
		var dialer net.Dialer
		c, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(o.Remote, tcpPort))
	}
	if err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	defer c.Close()
	d, err := carried(c, o, mode.run)
	if starved(err) {
		return worker.Report{GaveUp: err.Error()}, nil
	}
	if err != nil {
		return r, err
	}
	r = report(o, d.window, d.total, "TCP of Go", nil)
	r.Bytes = d.window.Packets() * uint64(o.Message)
	r.RTT = d.rtt
	return r, nil
}

// tcpPort is where the receiving end waits for the other.
const tcpPort = "7471"

// carried does a work over a connection, within the time that there is.
func carried(c net.Conn, o worker.Options, run func(net.Conn, worker.Options) (done, error)) (
	done, error,
) {
	if err := c.SetDeadline(time.Now().Add(o.Warmup + o.Window + messageSpare)); err != nil {
		return done{}, err
	}
	return run(c, o)
}

func (m *messenger) streamOut(o worker.Options) (done, error)  { return m.carry(o, bytesOut) }
func (m *messenger) streamIn(o worker.Options) (done, error)   { return m.carry(o, bytesIn) }
func (m *messenger) streamPing(o worker.Options) (done, error) { return m.carry(o, bytesPing) }
func (m *messenger) streamEcho(o worker.Options) (done, error) { return m.carry(o, bytesEcho) }

// carry does a work over a stream.
func (m *messenger) carry(o worker.Options, run func(net.Conn, worker.Options) (done, error)) (
	d done, err error,
) {
	var c net.Conn
	if m.streams != nil {
		c, err = m.streams.Accept()
	} else {
		c, err = m.endpoint.DialStream(m.ctx, m.at)
	}
	if err != nil {
		return d, err
	}
	d, err = carried(c, o, run)
	return d, errors.Join(err, c.Close())
}

// bytesOut writes o.Message bytes at a time.
func bytesOut(c net.Conn, o worker.Options) (d done, err error) {
	data := make([]byte, o.Message)
	data[0] = 1
	w := worker.NewWindow(o)
	d.window = w
	end := o.Warmup + o.Window + overtime
	for now := w.Now(); w.Tick(now, d.total) || now < end; now = w.Now() {
		if _, err := c.Write(data); err != nil {
			return d, err
		}
		d.total++
	}
	return d, finish(c)
}

// finish says that nothing more is written, and waits until the peer has read all of it and has
// closed. How that ends is the peer's: it may be gone.
func finish(c net.Conn) error {
	err := c.(interface{ CloseWrite() error }).CloseWrite()
	if err == nil {
		_, _ = io.Copy(io.Discard, c)
	}
	return err
}

// bytesIn reads to the end. What it counts is pieces of o.Message bytes.
func bytesIn(c net.Conn, o worker.Options) (d done, err error) {
	room := make([]byte, o.Message)
	w := worker.NewWindow(o)
	d.window = w
	var came uint64
	for {
		w.Tick(w.Now(), d.total)
		n, err := c.Read(room)
		came += uint64(n)
		d.total = came / uint64(o.Message)
		if err == io.EOF {
			w.Close(d.total)
			return d, nil
		}
		if err != nil {
			return d, err
		}
	}
}

// bytesPing writes o.Message bytes and waits until as many have come back.
func bytesPing(c net.Conn, o worker.Options) (d done, err error) {
	data := make([]byte, o.Message)
	hist := newRoundTrips()
	w := worker.NewWindow(o)
	d.window = w
	for w.Tick(w.Now(), d.total) {
		sent := w.Now()
		if _, err := c.Write(data); err != nil {
			return d, err
		}
		if _, err := io.ReadFull(c, data); err != nil {
			return d, err
		}
		d.total++
		if w.Open() {
			_ = hist.RecordValue((w.Now() - sent).Nanoseconds())
		}
	}
	d.rtt = roundTrips(hist)
	return d, finish(c)
}

// bytesEcho sends back what comes, o.Message bytes at a time, until the end.
func bytesEcho(c net.Conn, o worker.Options) (d done, err error) {
	data := make([]byte, o.Message)
	w := worker.NewWindow(o)
	d.window = w
	for {
		w.Tick(w.Now(), d.total)
		if _, err = io.ReadFull(c, data); err == nil {
			_, err = c.Write(data)
		}
		if err == io.EOF {
			w.Close(d.total)
			return d, nil
		}
		if err != nil {
			return d, err
		}
		d.total++
	}
}
