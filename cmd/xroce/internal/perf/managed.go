package perf

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/oob/perftest"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A Managed is the Connector over rdma_cm, that of -R: the exchange is in messages of
// a queue pair of its own, and rdma_cm connects the others as well; but not with -z, when
// nobody calls Join.
type Managed struct {
	*perftest.Conn
	// ManagedExchange is that of the test, and is set before the exchange: nobody calls Join then,
	// so keys without a GID are none.
	ManagedExchange bool

	ctx      context.Context
	dev      *engine.Device
	manager  *cm.Manager
	at       netip.AddrPort // of the server
	from     netip.Addr     // of a client, the zero Addr for what the routes say
	dial     bool
	patience time.Duration // of a client with a server that does not answer
	// strange, of a server, is told who asked and was no client; it may be nil.
	strange func(*cm.Request, error)

	listener *cm.Listener // of a server
	talk     *talk        // what the exchange goes over
	conns    []*cm.Conn   // of the test

	inbox   chan []byte   // messages that came
	sent    chan struct{} // a message was acknowledged
	over    chan struct{} // closed when err is there
	pending []byte        // of a message that came

	interrupted chan struct{} // closed when reason is there

	mu     sync.Mutex  // guards what follows
	gone   func(error) // called when the peer hangs up during a watch
	err    error
	reason error // of the interruption
}

// messageLen is the longest message of the exchange: that of Plan, and of the tool that
// of Keys.
const messageLen = max(keysLen, perftest.PlanLen)

// inboxLen is how many messages may wait. Both ends take turns, so one does.
const inboxLen = 4

// NewManaged connects to the server at an address, or waits there for a client: the first that says
// its version. A client does so from an address of its own, the zero Addr for what the routes say.
// Close must be called. Each function may be nil: listening is called when a server waits, and
// strange is told who asked it and was no client, and why.
func NewManaged(
	ctx context.Context, dev *engine.Device, manager *cm.Manager, at netip.AddrPort,
	from netip.Addr, dial bool, listening func(), strange func(*cm.Request, error),
) (*Managed, error) {
	m := &Managed{
		ctx: ctx, dev: dev, manager: manager, at: at, from: from, dial: dial,
		inbox: make(chan []byte, inboxLen), patience: peer.ConnectTime,
		sent: make(chan struct{}, 1),
		over: make(chan struct{}), interrupted: make(chan struct{}), strange: strange,
	}
	m.Conn = perftest.New(messages{m}, dial)
	var err error
	if !dial {
		if m.listener, err = manager.Listen(at); err != nil {
			return nil, err
		}
		if listening != nil {
			listening()
		}
	}
	if m.talk, err = m.meet(ctx); err != nil {
		return nil, fmt.Errorf("rdma_cm: %w", err)
	}
	m.from = m.talk.LocalAddr().Addr() // of all connections, also when the routes change
	go m.listen()
	return m, nil
}

// gid is the index of the GID that the connections are from, which -x has chosen, or the route.
func (m *Managed) gid() (int, error) {
	own := m.talk.LocalAddr().Addr()
	index := slices.Index(m.dev.GIDs(), wire.GIDFromAddr(own))
	if index < 0 {
		return 0, fmt.Errorf("%w: %s has lost the address %s", roce.ErrInvalid, m.dev.Name(), own)
	}
	return index, nil
}

// A talk is the connection that the exchange goes over.
type talk struct {
	*cm.Conn
	cq *engine.CQ
	mr *engine.MR // the message received, the message sent
	qp *engine.QP
	pd *engine.PD

	first []byte // of a server: what the client said first
}

// meet makes the connection of the exchange. Who asks a server may not be there, so it answers
// several.
func (m *Managed) meet(ctx context.Context) (*talk, error) {
	if m.dial {
		return m.newTalk(func(s cm.Setup) (*cm.Conn, error) { return m.ask(ctx, s) })
	}
	met, err := cm.Meeting[*talk]{
		Next: m.listener.Accept, Failed: m.strange,
		Accept: func(ctx context.Context, r *cm.Request) (*talk, error) {
			t, err := m.newTalk(func(s cm.Setup) (*cm.Conn, error) { return r.Accept(ctx, s) })
			if err != nil {
				_ = r.Reject(nil) // Accept may have done it, and then this does nothing
				return nil, err
			}
			if err := t.hearVersion(ctx); err != nil {
				t.drop()
				return nil, err
			}
			return t, nil
		},
		Leave: (*talk).drop,
	}.Meet(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("accept at %s: %w", m.at, err)
	}
	m.inbox <- met[0].first
	return met[0], nil
}

// ErrNoClient says that who connected does not say what a client says first.
var ErrNoClient = errors.New("it does not say what a client says")

// firstWordTime is how long a client may take to say its version.
const firstWordTime = 30 * time.Second

// hearVersion waits for what a client says first.
func (t *talk) hearVersion(ctx context.Context) error {
	most := peer.Stretched(ctx, firstWordTime)
	limited, cancel := context.WithTimeoutCause(ctx, most,
		fmt.Errorf("%w within %s", ErrNoClient, most))
	defer cancel()
	var wcs [1]roce.Completion
	if _, err := t.cq.Wait(limited, wcs[:]); err != nil {
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		return err
	}
	if err := t.failure(&wcs[0]); err != nil {
		return err
	}
	t.first = slices.Clone(t.mr.Bytes()[:wcs[0].ByteLen])
	if !perftest.IsVersion(t.first) {
		return fmt.Errorf("%w: %.16q", ErrNoClient, t.first)
	}
	return t.receive(t.qp)
}

// failure says why a completion is none, nil if it is one.
func (t *talk) failure(wc *roce.Completion) error {
	if wc.Status == roce.StatusWRFlushErr && t.Err() != nil {
		return fmt.Errorf("the peer closed the connection: %w", t.Err())
	}
	return wc.Err()
}

// drop ends a talk that is none, and waits for nobody.
func (t *talk) drop() {
	t.Destroy()
	t.free()
}

// newTalk makes a connection by join, which is given what it needs.
func (m *Managed) newTalk(join func(cm.Setup) (*cm.Conn, error)) (t *talk, err error) {
	t = &talk{pd: m.dev.AllocPD()}
	defer func() {
		if err != nil {
			t.free()
		}
	}()
	if t.cq, err = m.dev.CreateCQ(2 + inboxLen); err != nil {
		return nil, err
	}
	t.mr, err = m.dev.RegMR(t.pd, make([]byte, 2*messageLen), mem.LocalWrite)
	if err != nil {
		return nil, err
	}
	s := cm.Setup{PD: t.pd, Prepare: t.receive, Init: engine.QPInit{
		SendCQ: t.cq, RecvCQ: t.cq, MaxSendWR: 1, MaxRecvWR: 2, SignalAll: true,
	}}
	if t.qp, err = m.dev.CreateQP(t.pd, s.Init); err != nil {
		return nil, err
	}
	s.QP = t.qp
	t.Conn, err = join(s)
	return t, err
}

// free gives back what a talk has that is none. All that an error could say is that something is
// in use, which the end of the device settles.
func (t *talk) free() {
	if t.qp != nil {
		t.qp.Close()
	}
	if t.mr != nil {
		_ = t.mr.Deregister()
	}
	if t.cq != nil {
		_ = t.cq.Close()
	}
	_ = t.pd.Close()
}

// receive posts the receive of the next message.
func (t *talk) receive(qp *engine.QP) error {
	return qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{t.mr.SGE(0, messageLen)}})
}

// Connect implements Connector: with -R, Join has done it.
func (m *Managed) Connect(ctx context.Context, l Link) error {
	if len(m.conns) == 0 {
		return connect(ctx, m.dev, l)
	}
	if l.RateLimit != 0 {
		return fmt.Errorf("a rate of queue pairs that rdma_cm connects: %w", errors.ErrUnsupported)
	}
	return nil
}

// Keys implements Connector. Its message is binary, where that over TCP is text.
func (m *Managed) Keys(local perftest.Endpoint) (perftest.Endpoint, error) {
	return m.keys(local, func() {})
}

// keys is Keys of an end that does something between hearing the client's and telling its own.
func (m *Managed) keys(
	local perftest.Endpoint, between func(),
) (remote perftest.Endpoint, err error) {
	if m.dial {
		err = m.write(putKeys(local))
	}
	if err == nil {
		remote, err = m.hearKeys()
	}
	if err == nil && !m.dial {
		between()
		err = m.write(putKeys(local))
	}
	if err != nil {
		return remote, fmt.Errorf("keys: %w", err)
	}
	return remote, nil
}

// hearKeys waits for the peer's keys.
func (m *Managed) hearKeys() (perftest.Endpoint, error) {
	b, err := m.read()
	if err != nil {
		return perftest.Endpoint{}, err
	}
	remote, err := parseKeys(b, m.Group)
	if err == nil && m.ManagedExchange && remote.GID.IsZero() {
		err = perftest.ErrNoGID
	}
	return remote, err
}

// Done implements Connector: over rdma_cm no message says so.
func (m *Managed) Done() error { return nil }

// Interrupt implements Connector.
func (m *Managed) Interrupt(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reason == nil {
		m.reason = err
		close(m.interrupted)
	}
}

// Watch implements Connector.
func (m *Managed) Watch(gone func(error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone = gone; m.err != nil {
		gone(m.err)
	}
}

// Heard implements Connector.
func (m *Managed) Heard() bool { return len(m.inbox) > 0 }

// partTime is how long to wait for the peer when all is said.
const partTime = 6 * time.Second

// Close hangs up, the server first, and waits until both ends know.
func (m *Managed) Close() {
	ctx, cancel := context.WithTimeout(m.ctx, partTime)
	defer cancel()
	await := func(c <-chan struct{}) {
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
	all := append(m.conns, m.talk.Conn)
	for _, c := range all {
		if m.dial {
			await(c.Done())
		}
		c.Close()
	}
	for _, c := range all {
		await(c.Released())
	}
}

// listen takes what comes until the connection ends.
func (m *Managed) listen() {
	err := m.serve()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	close(m.over)
	if m.gone != nil {
		m.gone(err)
	}
}

func (m *Managed) serve() error {
	var wcs [1]roce.Completion
	for {
		if _, err := m.talk.cq.Wait(m.ctx, wcs[:]); err != nil {
			return err
		}
		wc := &wcs[0]
		if err := m.talk.failure(wc); err != nil {
			return err
		}
		if wc.Opcode == roce.WCSend {
			m.sent <- struct{}{} // there is one at a time
			continue
		}
		message := append([]byte(nil), m.talk.mr.Bytes()[:wc.ByteLen]...)
		if err := m.talk.receive(m.talk.QP()); err != nil {
			return err
		}
		select {
		case m.inbox <- message:
		default:
			return fmt.Errorf("%w: the peer does not wait for its turn", perftest.ErrMessage)
		}
	}
}

// write sends a message and waits until the peer has it.
func (m *Managed) write(b []byte) error {
	copy(m.talk.mr.Bytes()[messageLen:], b)
	err := m.talk.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{m.talk.mr.SGE(messageLen, len(b))},
	})
	if err != nil {
		return err
	}
	_, err = await(m, m.sent)
	return err
}

// read waits for a message.
func (m *Managed) read() ([]byte, error) {
	return await(m, m.inbox)
}

// await waits for what comes by a channel. What was there when the connection ended has
// come: a peer that is through hangs up behind its last word.
func await[T any](m *Managed, c <-chan T) (v T, err error) {
	select {
	case v = <-c:
		return v, nil
	case <-m.over:
		err = m.err
	case <-m.interrupted:
		err = m.reason
	}
	select {
	case v = <-c:
		return v, nil
	default:
		return v, err
	}
}

// messages is what the steps of the exchange but Keys read and write: each message is
// what one step writes.
type messages struct{ m *Managed }

func (s messages) Read(b []byte) (int, error) {
	m := s.m
	if len(m.pending) == 0 {
		var err error
		if m.pending, err = m.read(); err != nil {
			return 0, err
		}
	}
	n := copy(b, m.pending)
	m.pending = m.pending[n:]
	return n, nil
}

func (s messages) Write(b []byte) (int, error) { return len(b), s.m.write(b) }
