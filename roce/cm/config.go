package cm

import (
	"fmt"

	"xroce/roce/internal/handle"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// Implementation constants: the defaults of Config.
const (
	defaultHalfOpen    = 256
	defaultConnections = 1 << 16
	overPart           = 4 // of all connections
	defaultBacklog     = 128
	defaultOutbox      = 1024
	defaultTimeout     = 20 // of Linux (kernel drivers/infiniband/core/cma.c)
	defaultLifeTime    = 16 // of Linux for RoCE
	defaultMRATimeout  = 24 // of Linux
)

// maxRetries is the largest number of repetitions that a REQ can ask for, which
// is also what Linux asks for.
const maxRetries = 15

// Config says what a new Machine is. Zero values get the defaults.
type Config struct {
	Rand   handle.Rand     // of communication IDs; required
	CAGUID uint64          // of the device
	Agent  uint32          // upper half of our transaction IDs, default 1
	MTU    wire.MTU        // largest path MTU that a peer may ask for, default 4096
	PKeys  verbs.PKeyTable // of the port, default that of the default partition

	ResponseTimeout uint8 // timeout code that we ask of and promise to peers, default 20
	PacketLifeTime  uint8 // of the path, a code as above, default 16
	AckDelay        uint8 // our local ACK delay, a code as above, default 0
	MRATimeout      uint8 // service timeout of our MRAs, a code as above, default 24
	// MaxRetries is how often a message without answer is repeated, at most 15,
	// the default.
	MaxRetries uint8

	// MaxHalfOpen is how many requests of peers there may be that were not yet
	// answered by the application, and as many whose answer was not yet acknowledged; a
	// new one takes the place of one of the station that has the most (docs/architecture.md). It
	// bounds SIDR requests as well, apart from the others. Default 256.
	MaxHalfOpen int
	// MaxConnections is how many connections there may be, those in time-wait
	// included. Default 65536.
	MaxConnections int
	// MaxOver is how many of these may have ended, and wait for the peer to confirm that or for
	// the end of time-wait, which a peer can make last for minutes; for a further one the oldest
	// is forgotten. Default a quarter of MaxConnections.
	MaxOver int
	// MaxOutbox is how many MADs wait to be sent at most; what is more is lost,
	// as on the wire. Default 1024.
	MaxOutbox int
}

func (c *Config) setDefaults() error {
	if c.Rand == nil {
		return fmt.Errorf("%w: a machine needs a source of random numbers", ErrInvalid)
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = defaultConnections
	}
	for _, d := range []struct {
		field *int
		value int
	}{
		{&c.MaxHalfOpen, defaultHalfOpen},
		{&c.MaxConnections, defaultConnections},
		{&c.MaxOver, max(c.MaxConnections/overPart, 1)},
		{&c.MaxOutbox, defaultOutbox},
	} {
		if *d.field < 0 {
			return fmt.Errorf("%w: a limit is negative", ErrInvalid)
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field      *uint8
		value, max uint8
	}{
		{&c.ResponseTimeout, defaultTimeout, 31},
		{&c.PacketLifeTime, defaultLifeTime, 30},
		{&c.AckDelay, 0, 31},
		{&c.MRATimeout, defaultMRATimeout, 31},
		{&c.MaxRetries, maxRetries, maxRetries},
		{(*uint8)(&c.MTU), uint8(wire.MTU4096), uint8(wire.MTU4096)},
	} {
		if *d.field > d.max {
			return fmt.Errorf("%w: %d is above %d", ErrInvalid, *d.field, d.max)
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if len(c.PKeys) == 0 {
		c.PKeys = verbs.DefaultPKeys()
	}
	if err := c.PKeys.Check(); err != nil {
		return err
	}
	if c.Agent == 0 {
		c.Agent = 1
	}
	return nil
}
