package msg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// ErrClosed says that the endpoint, the listener or the connection was closed.
var ErrClosed = msg.ErrClosed

// ErrQueued says that a message or a receive was posted again while it is under way.
var ErrQueued = msg.ErrQueued

// Options say how to open an endpoint. The zero value is a good choice.
type Options struct {
	// Machine says how messages are sent and how much is held. Its source of random numbers
	// is crypto/rand when it is nil. Its Keepalive is 10 s by default, negative for never: a
	// peer of which nothing was heard for so long is asked whether it is there, by the
	// reliable connection, which gives it up after some seconds (cm.Setup: 4 s). So a peer
	// whose host has died is noticed also by who sends nothing.
	Machine msg.Config
	// Depth is how many work requests a connection may have under way, default 64.
	Depth int
	// Linger is how long a stream that was closed may take to bring what was written to the
	// peer, and how long Endpoint.Close waits until peers agree that connections are over,
	// default 10 s.
	Linger time.Duration
	// CancelTimeout is how long a message may still be on its way whose context has ended, before
	// its connection is ended with ErrCancelTimeout, default 5 s: Conn.Send and Receive.Wait return
	// when its memory is the caller's again, and not before.
	CancelTimeout time.Duration
	// ActiveLimit is how many bytes an active message to this end may have, default 1 MiB: a
	// peer has memory made for it here.
	ActiveLimit int
	// Extensions are offered to peers: see roce.Extensions.
	Extensions roce.Extensions
	// Redial is how long after a rail was lost, or did not come about, it is dialled again,
	// default 100 ms; of further attempts twice as long each, up to 16 times.
	Redial time.Duration
	// Spin is how long who waits for a message looks for it without sleeping, default 20 us,
	// negative for not at all. On a device in direct mode it moves packets meanwhile, and sleeps
	// in the link for some milliseconds after that, before others have to wake it. On one
	// whose services Device.Progress runs, in a simulation, nobody spins, and Open refuses
	// more than 0: a call there must not drive.
	Spin time.Duration
}

// defaultActiveLimit is what is kept of messages that nobody has asked for, too.
const defaultActiveLimit = 1 << 20

// defaultKeepalive costs a packet each way over a connection that is idle.
const defaultKeepalive = 10 * roce.Second

// defaultSpin is about what it costs to sleep and to be woken.
const defaultSpin = 20 * time.Microsecond

// An Endpoint is the messages of an application: it has connections to many peers, and receives
// from any of them.
type Endpoint struct {
	*nic                    // the first one
	nics     []*nic         // a rail each
	keepers  sync.WaitGroup // of rails that are dialled again
	watchers sync.WaitGroup // who notice that peers have hung up
	options  Options
	memory   registrar
	exports  exports
	leaving  sync.WaitGroup  // connections that are over and not given back
	ctx      context.Context // of attempts to connect
	cancel   context.CancelFunc
	closing  sync.Once
	closed   error // what Close returned

	mu      sync.Mutex
	machine *msg.Endpoint
	hangUps []*rail // whose peers have hung up, which the machine was not told
	parting []*rail // of which all that is complete is to be taken, before they are closed
	// The ends of the time-wait of rails that were given back, the oldest first.
	farewells []<-chan struct{}
	owing     []*rail // of which several receives are to be posted
	drive     drive
	active    actives
	probes    []*probe // that wait for messages
	alarm     alarm
	wr        roce.SendWR
	wcs       [64]roce.Completion
	seen      roce.Time // when it looked at the clock last
	err       error     // why there is no more
	done      chan struct{}
	due       roce.Time // when the device was told last to call, if waits
	waits     bool

	conns    map[*Conn]struct{}   // that are not over
	streams  map[*Stream]struct{} // that were not closed
	changed  *sync.Cond           // of what follows
	ending   bool                 // Close was called
	attempts int                  // to connect
	lends    int                  // slots that somebody reads or writes
	hungUp   int                  // streams that were closed and are not over
}

// Open makes an endpoint on a device, with connections of a manager of it.
func Open(dev *engine.Device, manager *cm.Manager, o Options) (*Endpoint, error) {
	return OpenRails(o, Rail{dev, manager})
}

// OpenRails makes an endpoint on several devices, up to msg.MaxRails of roce/msg, which have the
// same clock. Its connections take as many as both ends have: see Dial. Unless it is set,
// Options.Machine.Keepalive is a second with more than one, so that a rail that is gone is
// noticed also when nothing goes there.
func OpenRails(o Options, rails ...Rail) (_ *Endpoint, err error) {
	if err := o.setDefaults(rails); err != nil {
		return nil, err
	}
	e := &Endpoint{
		options: o, done: make(chan struct{}),
		conns: map[*Conn]struct{}{}, streams: map[*Stream]struct{}{},
	}
	e.changed = sync.NewCond(&e.mu)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if e.machine, err = msg.New(o.Machine); err != nil {
		return nil, err
	}
	e.options.Machine = e.machine.Config()
	for _, r := range rails {
		if err := e.addNIC(r); err != nil {
			return nil, errors.Join(err, e.leaveNICs())
		}
	}
	e.hearImports()
	e.memory.start(e)
	if err = e.serve(); err != nil {
		e.memory.stop()
		return nil, errors.Join(err, e.leaveNICs())
	}
	return e, nil
}

// setDefaults checks the options and fills in what is zero.
func (o *Options) setDefaults(rails []Rail) error {
	if len(rails) == 0 || len(rails) > msg.MaxRails {
		return fmt.Errorf("%w: %d rails: want 1 to %d", msg.ErrInvalid, len(rails), msg.MaxRails)
	}
	simulated := rails[0].Device.Simulated()
	switch {
	case o.Spin > 0 && simulated:
		return fmt.Errorf("%w: to spin on a device that is simulated", msg.ErrInvalid)
	case o.Spin == 0 && !simulated:
		o.Spin = defaultSpin
	}
	if o.Depth == 0 {
		o.Depth = 64
	}
	if o.Machine.Rand == nil {
		o.Machine.Rand = random{}
	}
	o.Machine.Rails = len(rails)
	switch {
	case o.Machine.Keepalive < 0:
		o.Machine.Keepalive = 0
	case o.Machine.Keepalive > 0:
	case len(rails) > 1:
		o.Machine.Keepalive = roce.Second
	default:
		o.Machine.Keepalive = defaultKeepalive
	}
	if o.ActiveLimit == 0 {
		o.ActiveLimit = defaultActiveLimit
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.CancelTimeout, defaultCancelTimeout},
		{&o.Linger, 10 * time.Second},
		{&o.Redial, defaultRedial},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return nil
}

// receives is how many receives a connection has: what a peer may send without being told
// that there is room.
func (e *Endpoint) receives() int {
	c := &e.options.Machine
	return c.Slots + 2*max(c.LargeSlots, c.StreamSlots) + 4*c.Rendezvous + 32
}

// admit has room made in the CQ of a device for one more rail.
func (e *Endpoint) admit(n *nic) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return e.err
	case n.err != nil:
		return n.err
	case e.ending:
		return ErrClosed
	}
	more := e.entries()
	n.entries += more
	e.attempts++
	if n.entries <= n.cq.Depth() {
		return nil
	}
	if err := n.cq.Resize(max(n.entries, 2*n.cq.Depth())); err != nil {
		n.entries -= more
		e.attempts--
		return fmt.Errorf("msg: room for one more connection: %w", err)
	}
	return nil
}

// leave gives the room of a rail back.
func (e *Endpoint) leave(n *nic) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n.entries -= e.entries()
}

// entries is how many places of a CQ a rail may need.
func (e *Endpoint) entries() int { return e.receives() + lateReceives + e.options.Depth }

// init says what the queue pairs of connections are.
func (e *Endpoint) init(n *nic) engine.QPInit {
	return engine.QPInit{
		SendCQ: n.cq, RecvCQ: n.cq,
		MaxSendWR: e.options.Depth, MaxRecvWR: e.receives() + lateReceives,
		MaxSendSGE: 1, MaxRecvSGE: 1, MaxInline: msg.MaxControlLen,
		Extensions: e.options.Extensions,
	}
}

// rights are those that regions may give a peer, each its own.
const rights = mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic

// Close ends all connections at once, and the endpoint. What is under way fails with
// ErrClosed. It waits for streams that were closed before and for the time-wait of the
// connections, the last 256 of those that ended before, for Options.Linger at most, also when
// peers are dead; and for readers and writers that are in the memory of a stream. It is
// idempotent.
func (e *Endpoint) Close() error {
	e.closing.Do(func() { e.closed = e.close() })
	return e.closed
}

func (e *Endpoint) close() error {
	linger := time.NewTimer(e.options.Linger)
	defer linger.Stop()
	e.mu.Lock()
	e.ending = true
	e.cancel()
	for e.attempts > 0 {
		e.changed.Wait()
	}
	for e.hungUp > 0 && e.err == nil {
		e.changed.Wait()
	}
	if e.err == nil {
		e.end(ErrClosed)
	}
	for e.lends > 0 {
		e.changed.Wait()
	}
	e.mu.Unlock()
	<-e.done
	e.active.running.Wait()
	e.keepers.Wait()
	e.leaving.Wait()
	e.watchers.Wait()
	e.awaitFarewells(linger.C)
	e.closeHandles()
	e.memory.stop()
	e.mu.Lock()
	err := e.alarm.close()
	e.mu.Unlock()
	return errors.Join(err, e.leaveNICs())
}

// Receive takes the next message of any peer into buf, and says whose it is.
func (e *Endpoint) Receive(ctx context.Context, buf []byte) (n int, from *Conn, err error) {
	r := &Receive{Buffers: [][]byte{buf}}
	if err := e.PostReceive(r); err != nil {
		return 0, nil, err
	}
	err = r.Wait(ctx)
	return r.Length, r.From, err
}

// Snapshot returns the counters of the endpoint as they are now, over all connections that there
// are or were. Spec of each says what it counts.
func (e *Endpoint) Snapshot() msg.CounterSet {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Snapshot()
}

// Config returns how messages are sent, with the defaults.
func (e *Endpoint) Config() msg.Config { return e.options.Machine }

// Counters returns what the endpoint has counted, over all its connections.
func (e *Endpoint) Counters() msg.CounterSet {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Snapshot()
}

// Usage returns what the endpoint holds.
func (e *Endpoint) Usage() msg.Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Usage()
}
