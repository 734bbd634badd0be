package msg

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"

	"xroce/roce"
	"xroce/roce/msg"
)

// A Remote is memory that a peer has exported, and this end uses without the peer: see Conn.Import.
// Its methods are safe for concurrent use. They take effect in no order with messages and with each
// other, but before they return. The peer's device does them; what it does not allow, or not any
// more, ends the connection.
//
// When a context ends first, the call waits for Options.CancelTimeout at most, then ends the
// connection, and returns an error that wraps that of the context; or nil, when it was done
// meanwhile. The memory is the caller's when it returns.
type Remote struct {
	conn   *Conn
	length int
	memory msg.Memory
}

// maxImports is how many calls of Import a connection may have under way.
const maxImports = 16

// An importing is somebody who waits for an answer.
type importing struct {
	remote   *Remote
	err      error
	progress waiting
}

// Import asks the peer for memory that it exports, by its name: see Endpoint.Export. The error is
// fs.ErrNotExist when it has none of the name, *msg.StatusError when it could not make a key,
// roce.ErrQueueFull when 16 ask on this connection already, that of the context, or why the
// connection is over. A peer that knows nothing of exports does not answer.
func (c *Conn) Import(ctx context.Context, name string) (*Remote, error) {
	if name == "" || len(name) > MaxExportName {
		return nil, fmt.Errorf("msg: import %q: %w", name, fs.ErrNotExist)
	}
	p := &importing{}
	id, err := c.beginImport(p)
	if err != nil {
		return nil, err
	}
	defer c.endImport(id)
	ask := &Send{Buffers: [][]byte{[]byte(name)}, Tag: id, Active: true, Handler: handlerImport}
	if err := c.send(ctx, ask); err != nil {
		return nil, err
	}
	if err := c.endpoint.await(ctx, &p.progress); err != nil {
		return nil, err
	}
	if p.err != nil {
		return nil, fmt.Errorf("msg: import %q: %w", name, p.err)
	}
	return p.remote, nil
}

func (c *Conn) beginImport(p *importing) (id uint64, err error) {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case c.err != nil:
		return 0, c.err
	case len(c.imports) >= maxImports:
		return 0, fmt.Errorf("%w: %d imports are under way", roce.ErrQueueFull, maxImports)
	case c.imports == nil:
		c.imports = map[uint64]*importing{}
	}
	c.lastImport++
	p.progress.begin()
	c.imports[c.lastImport] = p
	return c.lastImport, nil
}

func (c *Conn) endImport(id uint64) {
	c.endpoint.mu.Lock()
	defer c.endpoint.mu.Unlock()
	delete(c.imports, id)
}

// imported takes the answer of the peer. The caller holds the endpoint's lock.
func (c *Conn) imported(id uint64, answer []byte) {
	p := c.imports[id]
	if p == nil || p.progress.over() {
		return // nobody waits any more, or the peer says it twice
	}
	status, length, memory, ok := parseImported(answer)
	switch {
	case !ok:
		p.err = msg.ErrLength
	case status == msg.StatusCancelled:
		p.err = fs.ErrNotExist
	case status != msg.StatusOK:
		p.err = &msg.StatusError{Status: status}
	default:
		p.remote = &Remote{conn: c, length: int(length), memory: memory}
	}
	p.progress.end()
}

// failImports tells those who wait that the connection is over. The caller holds the endpoint's
// lock.
func (c *Conn) failImports() {
	for _, p := range c.imports {
		if !p.progress.over() {
			p.err = c.err
			p.progress.end()
		}
	}
}

// Len returns how many bytes the memory has.
func (r *Remote) Len() int { return r.length }

// Put writes to the memory from a place on, and returns when the bytes are there. The error is
// msg.ErrInvalid of package roce/msg for what is not within the memory, msg.ErrUnknown when a rail
// was lost meanwhile, or why the connection is over: what is there then is not known.
func (r *Remote) Put(ctx context.Context, at int, data []byte) error {
	return r.do(ctx, at, &access{core: msg.RMA{Opcode: roce.OpWrite, Pieces: [][]byte{data}}})
}

// Get reads the memory from a place on, as much as buf has room for. The errors are those of Put
// but for ErrUnknown.
func (r *Remote) Get(ctx context.Context, at int, buf []byte) error {
	return r.do(ctx, at, &access{core: msg.RMA{Opcode: roce.OpRead, Pieces: [][]byte{buf}}})
}

// FetchAdd adds to 8 bytes at a multiple of 8, atomically with respect to other atomics there, and
// returns what was there before. The number is in the byte order of the peer's machine. The errors
// are those of Put.
func (r *Remote) FetchAdd(ctx context.Context, at int, add uint64) (uint64, error) {
	return r.atomic(ctx, at, &access{core: msg.RMA{Opcode: roce.OpFetchAdd, CompareAdd: add}})
}

// CompareSwap replaces 8 bytes at a multiple of 8 if they are what is compared with, and returns
// what was there before; the rest is that of FetchAdd.
func (r *Remote) CompareSwap(ctx context.Context, at int, compare, swap uint64) (uint64, error) {
	return r.atomic(ctx, at, &access{core: msg.RMA{
		Opcode: roce.OpCmpSwap, CompareAdd: compare, Swap: swap,
	}})
}

// An access is an operation of somebody who waits for it.
type access struct {
	core     msg.RMA
	progress waiting
}

func (r *Remote) atomic(ctx context.Context, at int, x *access) (uint64, error) {
	if at%8 != 0 {
		return 0, fmt.Errorf("%w: an atomic at %d, which is no multiple of 8", msg.ErrInvalid, at)
	}
	old := make([]byte, 8)
	x.core.Pieces = [][]byte{old}
	if err := r.do(ctx, at, x); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(old), nil
}

// do does an operation from a place of the memory on.
func (r *Remote) do(ctx context.Context, at int, x *access) error {
	n := len(x.core.Pieces[0])
	switch {
	case at < 0 || at > r.length || n > r.length-at:
		return fmt.Errorf("%w: %d bytes at %d of %d", msg.ErrInvalid, n, at, r.length)
	case n == 0:
		return nil
	}
	x.core.User, x.core.Remote = x, r.memory
	for i := range uint8(msg.MaxRails) {
		x.core.Remote.By(i).Addr += uint64(at)
	}
	c, e := r.conn, r.conn.endpoint
	if err := c.startRMA(x); err != nil {
		return err
	}
	err := e.await(ctx, &x.progress)
	if err == nil {
		return x.core.Err
	}
	e.sleepOrEnd(&x.progress, func() *msg.Conn { return c.core })
	return outcome(err, x.core.Err)
}

// startRMA hands an operation to the machine.
func (c *Conn) startRMA(x *access) error {
	e := c.endpoint
	now := e.begin()
	defer e.finish(now)
	x.progress.begin()
	return c.core.StartRMA(now, &x.core)
}
