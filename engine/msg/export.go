package msg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// MaxExportName is how many bytes the name of an Export may have.
const MaxExportName = 64

// Handlers from here on are the endpoint's own: Handle refuses them.
const (
	reservedHandler = 0xfffe
	handlerImport   = 0xfffe // a peer asks for an export, by its name
	handlerImported = 0xffff // the answer: see putImported
)

// An Export is memory that peers may use without asking for each access: see Endpoint.Export.
type Export struct {
	endpoint *Endpoint
	name     string
	memory   []byte
	rights   mem.Access
	shares   map[*Conn]msg.Memory // who has keys
}

// exports are those of an endpoint. Its lock is held while memory is registered, which may wait
// for those who move packets, and is taken with no other lock held.
type exports struct {
	mu     sync.Mutex
	byName map[string]*Export
}

// Export lets every peer that is connected, or will be, ask for memory by its name, and then read
// it (mem.RemoteRead), write it (mem.RemoteWrite) or do atomics there (mem.RemoteAtomic): see
// Conn.Import. The application is not told when they do, and sees to it that it does not use the
// memory at the same time where that matters; atomics of package sync/atomic are atomic with those
// of peers. Each peer gets keys of its own when it asks, which end with its connection.
//
// The error is msg.ErrInvalid of package roce/msg for a name that is empty or longer than
// MaxExportName, memory without bytes or other rights, ErrQueued for a name that is in use, and
// ErrClosed after Close.
func (e *Endpoint) Export(name string, memory []byte, rights mem.Access) (*Export, error) {
	const may = mem.RemoteRead | mem.RemoteWrite | mem.RemoteAtomic
	switch {
	case name == "" || len(name) > MaxExportName:
		return nil, fmt.Errorf("%w: the name %q: 1 to %d bytes", msg.ErrInvalid, name,
			MaxExportName)
	case len(memory) == 0:
		return nil, fmt.Errorf("%w: to export no memory", msg.ErrInvalid)
	case rights == 0 || rights&^may != 0:
		return nil, fmt.Errorf("%w: to export with the rights %v", msg.ErrInvalid, rights)
	}
	select {
	case <-e.done:
		return nil, ErrClosed
	default:
	}
	if rights != mem.RemoteRead {
		rights |= mem.LocalWrite // which the others need
	}
	x := &Export{
		endpoint: e, name: name, memory: memory, rights: rights, shares: map[*Conn]msg.Memory{},
	}
	e.exports.mu.Lock()
	defer e.exports.mu.Unlock()
	if e.exports.byName[name] != nil {
		return nil, fmt.Errorf("msg: export %q: %w", name, ErrQueued)
	}
	if e.exports.byName == nil {
		e.exports.byName = map[string]*Export{}
	}
	e.exports.byName[name] = x
	return x, nil
}

// Close takes the keys of all peers out of use: nobody touches the memory any more when it returns,
// and a peer that does so later loses its connection. It is idempotent.
func (x *Export) Close() error {
	all := &x.endpoint.exports
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byName[x.name] == x {
		delete(all.byName, x.name)
	}
	var err error
	for c, m := range x.shares {
		err = errors.Join(err, free(m.Owner))
		delete(x.shares, c)
	}
	return err
}

// share gives a peer keys to an export, the same ones each time. It fails with status.
func (e *Endpoint) share(c *Conn, name string) (x *Export, m msg.Memory, status msg.Status) {
	e.exports.mu.Lock()
	defer e.exports.mu.Unlock()
	if x = e.exports.byName[name]; x == nil {
		return nil, m, msg.StatusCancelled
	}
	if m, known := x.shares[c]; known {
		return x, m, msg.StatusOK
	}
	c.shared.Store(true)
	if c.Err() != nil { // else over sees that it has shares
		return nil, m, msg.StatusCancelled
	}
	m, err := e.expose(c, x)
	if err != nil {
		return nil, m, msg.StatusNoMemory
	}
	x.shares[c] = m
	return x, m, msg.StatusOK
}

// expose registers the memory of an export for a peer, on every device of the connection but those
// that are gone.
func (e *Endpoint) expose(c *Conn, x *Export) (all msg.Memory, err error) {
	on, adapters := e.domains(c), c.core.Adapters()
	for number, d := range on {
		if d.Device == nil || adapters>>number&1 == 0 {
			continue
		}
		d.Pool = nil // it lasts
		m, err := expose(d, [][]byte{x.memory}, x.rights)
		if err != nil {
			return msg.Memory{}, errors.Join(err, free(all.Owner))
		}
		*all.By(uint8(number)) = m.Key
		all.Owner = together(all.Owner, m.Owner.(*engine.MR))
	}
	if all.Owner == nil {
		return msg.Memory{}, errNoDevice
	}
	return all, nil
}

// unshare takes back all keys of a peer whose connection is over.
func (c *Conn) unshare() {
	all := &c.endpoint.exports
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, x := range all.byName {
		if m, ok := x.shares[c]; ok {
			_ = free(m.Owner) // nothing is bound to it: it cannot fail
			delete(x.shares, c)
		}
	}
}

// hearImports has the endpoint answer peers that ask for exports, and take their answers.
func (e *Endpoint) hearImports() {
	e.machine.Handle(handlerImport, func(_ roce.Time, m *msg.Active) (*msg.Receive, msg.Status) {
		if m.Length == 0 || m.Length > MaxExportName {
			return nil, msg.StatusTooLarge
		}
		e.active.start(e)
		return e.takeActive(m, e.answerImport)
	})
	e.machine.Handle(handlerImported, func(_ roce.Time, m *msg.Active) (*msg.Receive, msg.Status) {
		m.From.User.(*Conn).imported(m.Tag, m.Data)
		return nil, msg.StatusCancelled // which one that is here is not told
	})
}

// answerImport answers a peer. One that asks faster than it takes the answers loses its connection,
// as one does whose answers do not fit a slot (msg.Config.AnySize): it would wait for ever.
func (e *Endpoint) answerImport(m *Active) {
	x, memory, status := e.share(m.From, string(m.Data))
	length := 0
	if x != nil {
		length = len(x.memory)
	}
	answer := putImported(status, length, &memory)
	if m.From.inject(m.Tag, answer, true, handlerImported) != nil {
		m.From.Abort()
	}
}

// importedLen is the length of an answer: the status, the length of the memory, and its keys by
// the adapters, all big-endian.
const importedLen = 16 + 12*msg.MaxRails

func putImported(status msg.Status, length int, m *msg.Memory) []byte {
	b := make([]byte, 16, importedLen)
	b[0] = byte(status)
	binary.BigEndian.PutUint64(b[8:], uint64(length))
	for i := range uint8(msg.MaxRails) {
		k := m.By(i)
		b = binary.BigEndian.AppendUint64(b, k.Addr)
		b = binary.BigEndian.AppendUint32(b, k.RKey)
	}
	return b
}

// parseImported reads an answer. What it says is believed no further than that it is where the
// peer has work requests of ours go: to memory of its own.
func parseImported(b []byte) (status msg.Status, length uint64, m msg.Memory, ok bool) {
	if len(b) != importedLen {
		return 0, 0, m, false
	}
	for i := range uint8(msg.MaxRails) {
		at := b[16+12*int(i):]
		*m.By(i) = msg.Key{
			Addr: binary.BigEndian.Uint64(at), RKey: binary.BigEndian.Uint32(at[8:]),
		}
	}
	length = binary.BigEndian.Uint64(b[8:])
	return msg.Status(b[0]), length, m, length <= msg.MaxMessage
}
