package message

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"xroce/cmd/xroce/internal/perf"
	"xroce/roce/msg"
)

// A Test is what is measured.
type Test string

// The tests.
const (
	Pingpong Test = "pingpong" // one message there and one back, in turn
	Stream   Test = "stream"   // messages of the client, as many as it can
	RPC      Test = "rpc"      // calls of the client, several at once, each of which is answered
)

// Tests are all of them.
var Tests = []Test{Pingpong, Stream, RPC}

// Limits of a test.
const (
	MaxSize     = 1 << 30 // bytes of a message
	MinIters    = perf.MinSamples + 2
	MaxIters    = 100_000_000
	MaxDepth    = 1 << 14 // messages at once
	MaxPeers    = 1024
	MaxInFlight = 4 << 30 // bytes of all messages at once
)

// A Config is one test, of an end. Test, Size, Reply, Iters, Warmup, Peers and Unverified are to
// be the same at the other end, and so is what it asks of the protocol.
type Config struct {
	Test Test
	Addr netip.AddrPort // of the server
	// Further are its addresses of further rails, one for each further device of the endpoint, in
	// its order. A server gives the same address for each.
	Further    []netip.AddrPort
	Server     bool
	Size       int // bytes of a message of the client
	Reply      int // bytes of one of the server: of RPC and Pingpong
	Iters      int // messages of the client over each connection, of RPC calls
	Warmup     int // messages before those that count
	Depth      int // messages under way at once, of Stream and RPC
	PostList   int // messages of Stream that are posted at once, 0 for a quarter of Depth
	Peers      int // connections
	Unverified bool
	Protocol   msg.Protocol
	Level      msg.Level // of the messages of this end

	// How long the peer may take, 0 for the usual: to answer at all, to say what it is about to
	// do, and from one message to the next.
	Dial, Setup, Silence time.Duration
}

// ErrConfig says that a number is out of range.
var ErrConfig = errors.New("message: out of range")

// Check returns ErrConfig, and which field is out of range.
func (c *Config) Check() error {
	for _, r := range []struct {
		name            string
		value, min, max int
	}{
		{"--size", c.Size, 0, MaxSize},
		{"--reply", c.Reply, 0, MaxSize},
		{"-n", c.Iters, MinIters, MaxIters},
		{"--warmup", c.Warmup, 0, MaxIters},
		{"--depth", c.Depth, 1, MaxDepth},
		{"--post-list", c.PostList, 0, MaxDepth},
		{"--peers", c.Peers, 1, MaxPeers},
	} {
		if r.value < r.min || r.value > r.max {
			return fmt.Errorf("%w: %s %d is not in %d..%d", ErrConfig, r.name, r.value, r.min,
				r.max)
		}
	}
	depth := c.Depth
	if c.Test == Pingpong {
		depth = 1
	}
	if bytes := int64(max(c.Size, c.Reply)) * int64(depth) * int64(c.Peers); bytes > MaxInFlight {
		return fmt.Errorf("%w: --size, --depth and --peers need %d bytes, of which %d are too many",
			ErrConfig, bytes, int64(MaxInFlight))
	}
	return nil
}

// total is how many messages of the client there are over each connection.
func (c *Config) total() int { return c.Warmup + c.Iters }
