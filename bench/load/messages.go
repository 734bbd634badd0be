package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"xroce/bench/worker"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/roce"
	rmsg "xroce/roce/msg"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// messagesPort is where the receiving end waits for the other.
const messagesPort = 7471

// messageModes are the works over messages, each with that of the other end. Who listens answers.
var messageModes = map[string]struct {
	listens bool
	how     waiting
	run     func(*messenger, worker.Options) (done, error)
}{
	"post":  {false, always, (*messenger).pour},
	"take":  {true, asUsual, (*messenger).take},
	"ping":  {false, always, (*messenger).ping},
	"echo":  {true, always, (*messenger).echo},
	"first": {false, always, (*messenger).first},
	"early": {true, always, (*messenger).early},

	"announce-sleep":  {false, inBackground, announce(sleeps)},
	"announce-busy":   {false, inBackground, announce(computes)},
	"overlap-nothing": {false, inBackground, overlap(nil)},
	"overlap-sleep":   {false, inBackground, overlap(sleeps)},
	"overlap-busy":    {false, inBackground, overlap(computes)},

	"stream-post": {false, asUsual, (*messenger).streamOut},
	"stream-take": {true, asUsual, (*messenger).streamIn},
	"stream-ping": {false, asUsual, (*messenger).streamPing},
	"stream-echo": {true, asUsual, (*messenger).streamEcho},
}

// A waiting is who moves packets while a worker waits for messages.
type waiting int

const (
	always       waiting = iota // the worker, which never sleeps: one thread does everything
	asUsual                     // as it is by default on a device in direct mode
	inBackground                // the device's own loop, and the worker sleeps
)

// done is what came of a run.
type done struct {
	window *worker.Window
	total  uint64
	rtt    *worker.RTT
	nth    []worker.Nth
}

// A messenger is an endpoint on a device, for one connection at a time.
type messenger struct {
	ctx      context.Context // ends when the peer takes far too long
	device   *engine.Device
	manager  *cm.Manager
	endpoint *msg.Endpoint
	at       netip.AddrPort // of who listens
	listener *msg.Listener
	streams  *msg.StreamListener
	stamped  *stampLink // of the modes that look at what leaves, else nil
}

// messageSpare is how much longer than its window a run with messages may take: less than the
// harness waits for its report.
var messageSpare = timeout.Scaled(12 * time.Second)

// Messages does the work of o.Mode with messages of o.Message bytes, which travel by o.Protocol.
// The device is in direct mode, where the worker's one thread does everything, but for what the
// machine is to do without it. Who takes messages, and streams, sleep when nothing comes, as is the
// default, and as the receivers of SENDs and WRITEs do beside them.
func Messages(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	mode, ok := messageModes[o.Mode]
	if !ok {
		return r, fmt.Errorf("load: no mode %q of messages", o.Mode)
	}
	m, err := openMessenger(o, mode.how)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if mode.listens {
		if err := m.listen(o); err != nil {
			return r, err
		}
	}
	if err := worker.Ready(in, out); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Warmup+o.Window+messageSpare)
	defer cancel()
	m.ctx = ctx
	d, err := mode.run(m, o)
	if starved(err) {
		return worker.Report{GaveUp: err.Error()}, nil
	}
	if err != nil {
		return r, err
	}
	counts, err := deviceCounters(m.device)
	if err != nil {
		return r, err
	}
	r = report(o, d.window, d.total, worker.Messages+" over RC, copy", counts)
	r.Bytes = d.window.Packets() * uint64(o.Message)
	r.RTT, r.Nth = d.rtt, d.nth
	return r, nil
}

// starved reports whether an error is that of a peer that was not scheduled for too long, or of
// who was not scheduled itself: what it had under way is flushed then, because the other end was
// through, or gave up. If that failed for a reason of its own, it says so.
func starved(err error) bool {
	var work *roce.WorkError
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &work) &&
			(work.Status == roce.StatusRetryExcErr || work.Status == roce.StatusWRFlushErr)
}

// openMessenger opens a device with an endpoint on it.
func openMessenger(o worker.Options, how waiting) (m *messenger, err error) {
	remote := o.Remote
	if messageModes[o.Mode].listens {
		remote = o.Local
	}
	m = &messenger{}
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	m.at = netip.AddrPortFrom(addr, messagesPort)
	var machine rmsg.Config
	if o.Protocol != "" {
		if machine.Protocol, err = rmsg.ParseProtocol(o.Protocol); err != nil {
			return nil, fmt.Errorf("load: %q: %w", o.Protocol, err)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	device := engine.Options{
		Mode: xsk.ModeCopy, Direct: how != inBackground, Queues: []int{o.Queue},
	}
	if strings.HasPrefix(o.Mode, "announce") {
		m.device, m.stamped, err = openStamped(o, device)
	} else {
		m.device, err = engine.Open(o.Interface, device)
	}
	if err != nil {
		return m, err
	}
	if m.manager, err = cm.Open(m.device, cm.Options{}); err != nil {
		return m, err
	}
	options := msg.Options{Machine: machine}
	if how == always {
		options.Spin = time.Hour // who polls never sleeps
	}
	m.endpoint, err = msg.Open(m.device, m.manager, options)
	return m, err
}

// listen makes the end that waits ready for its peer.
func (m *messenger) listen(o worker.Options) (err error) {
	if strings.HasPrefix(o.Mode, "stream") {
		m.streams, err = m.endpoint.ListenStream(m.at)
	} else {
		m.listener, err = m.endpoint.Listen(m.at)
	}
	return err
}

// connect makes the connection: who listens waits for it.
func (m *messenger) connect() (*msg.Conn, error) {
	if m.listener != nil {
		return m.listener.Accept(m.ctx)
	}
	return m.endpoint.Dial(m.ctx, m.at)
}

// close gives back what there is, the manager before the endpoint: so that does not wait for
// peers that may be gone.
func (m *messenger) close() (err error) {
	if m.listener != nil {
		m.listener.Close()
	}
	if m.streams != nil {
		err = errors.Join(err, m.streams.Close())
	}
	if m.manager != nil {
		err = errors.Join(err, m.manager.Close())
	}
	if m.endpoint != nil {
		err = errors.Join(err, m.endpoint.Close())
	}
	if m.device != nil {
		err = errors.Join(err, m.device.Close())
	}
	return err
}

// parting is how long an end waits for the other to close a connection as well.
var parting = timeout.Scaled(2 * time.Second)

// part closes a connection. What the peer makes of it is not our work.
func (m *messenger) part(c *msg.Conn) {
	ctx, cancel := context.WithTimeout(m.ctx, parting)
	defer cancel()
	_ = c.Close(ctx)
}

// ticks is how many messages are posted at once, and go between two looks at the clock. It divides
// the depth.
func ticks(o worker.Options) int {
	if o.Message > 4096 {
		return 1
	}
	return 32
}

// depth is how many messages are under way at once: as many as work requests of a WRITE while they
// are short, and some megabytes of long ones.
func depth(o worker.Options) int {
	return max(8, min(sendDepth, (8<<20)/max(1, o.Message)))
}
