package perftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"xroce/engine/oob"
	"xroce/roce/wire"
)

// A Conn is one end of the exchange. It reads no byte more than is due. It is not
// safe for concurrent use.
type Conn struct {
	rw     io.ReadWriter
	client bool

	// Group is that of a test which sends to one, as the user has named it: the only one that a
	// peer may tell as its address. It is zero otherwise, and is set before the exchange.
	Group wire.GID
}

// New begins the exchange on a connection, of the end that made it (the client) or
// of the one that accepted it.
func New(rw io.ReadWriter, client bool) *Conn { return &Conn{rw: rw, client: client} }

// swap is one step: the client sends out and receives in, the server the other way
// round.
func (c *Conn) swap(what string, out, in []byte) error {
	steps := []func() error{
		func() error { return c.write(what, out) },
		func() error { return c.read(what, in) },
	}
	if !c.client {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) write(what string, b []byte) error {
	_, err := c.rw.Write(b)
	switch {
	case oob.HungUp(err):
		return fmt.Errorf("perftest: send %s: the peer has closed the connection, and its own "+
			"message says why: %w", what, err)
	case err != nil:
		return fmt.Errorf("perftest: send %s: %w", what, err)
	}
	return nil
}

func (c *Conn) read(what string, b []byte) error {
	n, err := io.ReadFull(c.rw, b)
	switch {
	case oob.HungUp(err):
		return fmt.Errorf("perftest: receive %s: %w: the peer closed the connection after %d of "+
			"%d bytes; its own message says why, and whether both ends were started for the "+
			"same test", what, err, n, len(b))
	case err != nil:
		return fmt.Errorf("perftest: receive %s: %w", what, err)
	}
	return nil
}

// Versions tells the peer our version and learns its own. A peer that is too old
// is an error that names both. With plans it also tells that this end knows Plan, where
// the tools do not look; both reports whether the peer does too.
func (c *Conn) Versions(local Version, plans bool) (remote Version, both bool, err error) {
	var out, in [versionLen]byte
	if err := local.put(&out, plans); err != nil {
		return "", false, err
	}
	if err := c.swap("version", out[:], in[:]); err != nil {
		return "", false, err
	}
	remote, both, err = parseVersion(&in)
	if err != nil {
		return "", false, fmt.Errorf("%w; we are version %s", err, local)
	}
	if n, _ := remote.number(); n < oldestVersion {
		return "", false, fmt.Errorf("perftest: the peer is version %s, we are %s and talk to "+
			"%.2f or later: %w", remote, local, oldestVersion, errors.ErrUnsupported)
	}
	return remote, both && plans, nil
}

// A System is what an end tells of its machine; both then use the larger values.
type System struct {
	Cycle     int // bytes after which small messages begin anew in their buffer: a page
	CacheLine int // bytes by which they are apart at least
}

// Bounds of what a peer may ask for: the tools tell a page, of 64 KiB at most where there
// is Linux, and a cache line.
const (
	maxCycle     = 1 << 20
	maxCacheLine = 1 << 12
)

// System tells the peer about our machine and returns what both use. What a peer tells
// makes the memory of a test larger, so it is bounded; more is ErrMessage.
func (c *Conn) System(local System) (System, error) {
	agreed := local
	for _, f := range []struct {
		what string
		v    *int
		most uint32
	}{
		{"buffer cycle", &agreed.Cycle, maxCycle},
		{"cache line size", &agreed.CacheLine, maxCacheLine},
	} {
		var out, in [4]byte
		binary.BigEndian.PutUint32(out[:], uint32(*f.v))
		if err := c.swap(f.what, out[:], in[:]); err != nil {
			return System{}, err
		}
		remote := binary.BigEndian.Uint32(in[:])
		if remote > f.most {
			return System{}, fmt.Errorf("%w: the peer asks for a %s of %d bytes, %d are the most",
				ErrMessage, f.what, remote, f.most)
		}
		*f.v = max(*f.v, int(remote))
	}
	return agreed, nil
}

// MTU tells the peer our path MTU and returns the smaller one, which both use.
func (c *Conn) MTU(local wire.MTU) (wire.MTU, error) {
	out := [2]byte{'0' + byte(local), 0}
	var in [2]byte
	if err := c.swap("path MTU", out[:], in[:]); err != nil {
		return 0, err
	}
	if in[0] < '1' || in[0] > '5' || in[1] != 0 {
		return 0, fmt.Errorf("%w: %q is no code of a path MTU", ErrMessage, in[:])
	}
	return min(local, wire.MTU(in[0]-'0')), nil
}

// Keys tells the peer one of our endpoints and learns one of its own. Each end goes
// on when the other has come as far: the tests use it as a barrier, too. A peer
// without a GID is ErrNoGID.
func (c *Conn) Keys(local Endpoint) (Endpoint, error) {
	send := func() error { return c.write("keys", append(local.AppendText(nil), 0)) }
	if c.client {
		if err := send(); err != nil {
			return Endpoint{}, err
		}
	}
	remote, err := c.readKeys()
	if err != nil {
		return Endpoint{}, err
	}
	if !c.client {
		if err := send(); err != nil {
			return Endpoint{}, err
		}
	}
	return remote, nil
}

func (c *Conn) readKeys() (Endpoint, error) {
	var in [keysLen]byte
	if err := c.read("keys", in[:keysShortLen]); err != nil {
		return Endpoint{}, err
	}
	if in[keysShortLen-1] == 0 {
		return Endpoint{}, ErrNoGID
	}
	if err := c.read("keys", in[keysShortLen:]); err != nil {
		return Endpoint{}, err
	}
	if in[keysLen-1] != 0 {
		return Endpoint{}, fmt.Errorf("%w: %q instead of keys", ErrMessage, in[:])
	}
	e, err := parseEndpoint(string(in[:keysLen-1]), c.Group)
	if err == nil && e.GID.IsZero() {
		err = ErrNoGID
	}
	return e, err
}

// Reports tells the peer our result and learns its own.
func (c *Conn) Reports(local Report) (Report, error) {
	var remote [reportFields]uint64
	for i, v := range local.values() {
		var out, in [8]byte
		binary.BigEndian.PutUint64(out[:], v)
		if err := c.swap("report", out[:], in[:]); err != nil {
			return Report{}, err
		}
		remote[i] = binary.BigEndian.Uint64(in[:])
	}
	return reportOf(remote), nil
}

// Done says that this end is through and waits for the other. The tools of later
// versions close the connection instead, which is as good.
func (c *Conn) Done() error {
	done := [...]byte{'d', 'o', 'n', 'e', 0}
	if err := c.write("done", done[:]); err != nil && !oob.HungUp(err) {
		return err
	}
	var in [len(done)]byte
	if err := c.read("done", in[:]); err != nil {
		if oob.HungUp(err) {
			return nil
		}
		return err
	}
	if in != done {
		return fmt.Errorf("%w: %q instead of done", ErrMessage, in[:])
	}
	return nil
}
