package message

import (
	"fmt"
	"maps"

	"xroce/roce/clock"
	"xroce/roce/msg"
)

// A Plan is messages one after the other that cost the same.
type Plan struct {
	First, Last int // which, from 1 on
	Cost
}

// An Explanation is how messages of a shape travel over a new connection, and what that costs.
type Explanation struct {
	Config     msg.Config // with its defaults
	Size       int
	Pieces     []int
	MTU        int  // payload of a packet
	Connection Cost // before the first message
	Plans      []Plan
	// Forced is the last of the plans by each protocol that messages may be forced to take. One
	// that such a message cannot take is another one in there, which says so. There are none of
	// more than MaxCompared bytes.
	Forced []Plan
}

// maxRehearsed is how many messages are looked at, at most.
const maxRehearsed = 64

// MaxPieces is how many pieces a message may have.
const MaxPieces = 1 << 10

// MaxCompared is of how many bytes a message is sent by all protocols, to compare them: its data is
// there and is copied.
const MaxCompared = 16 << 20

// Forced are the protocols of Explanation.Forced.
var Forced = []msg.Protocol{msg.Eager, msg.Provisioned, msg.Get, msg.Put, msg.Fragments}

// Explain says how messages travel whose pieces have these lengths, each sent after the one before
// it has arrived, and its receive posted before it. A packet carries mtu bytes. The error is
// ErrConfig, or that of msg.New.
func Explain(c msg.Config, pieces []int, mtu int) (*Explanation, error) {
	e, err := explain(c, pieces, mtu)
	if err != nil {
		return nil, err
	}
	if e.Size > MaxCompared {
		return e, nil
	}
	for _, c.Protocol = range Forced {
		forced, err := explain(c, pieces, mtu)
		if err != nil {
			return nil, err
		}
		e.Forced = append(e.Forced, forced.Plans[len(forced.Plans)-1])
	}
	return e, nil
}

func explain(c msg.Config, pieces []int, mtu int) (*Explanation, error) {
	e := &Explanation{Pieces: pieces, MTU: mtu}
	if mtu < 1 {
		return nil, fmt.Errorf("%w: packets of %d bytes", ErrConfig, mtu)
	}
	if len(pieces) > MaxPieces {
		return nil, fmt.Errorf("%w: %d pieces: at most %d", ErrConfig, len(pieces), MaxPieces)
	}
	for _, n := range pieces {
		if n < 0 || n > MaxSize || e.Size+n > MaxSize {
			return nil, fmt.Errorf("%w: a piece of %d bytes: at most %d in all", ErrConfig, n,
				MaxSize)
		}
		e.Size += n
	}
	r, err := newRehearsal(c)
	if err != nil {
		return nil, err
	}
	r.count = &e.Connection
	e.Connection.Control, e.Connection.mtu = map[string]int{}, mtu
	if err := r.run(); err != nil {
		return nil, err
	}
	e.Config = r.ends[0].endpoint.Config()
	from, to := split(pieces, e.Size), split([]int{e.Size}, e.Size)
	for n := 1; n <= min(e.Config.After+3, maxRehearsed); n++ {
		cost, err := r.message(from, to, mtu)
		if err != nil {
			return nil, err
		}
		if last := len(e.Plans) - 1; last >= 0 && e.Plans[last].equal(&cost) {
			e.Plans[last].Last = n
			continue
		}
		e.Plans = append(e.Plans, Plan{n, n, cost})
	}
	return e, nil
}

// split makes a message of pieces.
func split(pieces []int, size int) [][]byte {
	all := make([]byte, size)
	list := make([][]byte, len(pieces))
	for i, n := range pieces {
		list[i], all = all[:n:n], all[n:]
	}
	return list
}

// equal reports whether two messages cost the same.
func (c *Cost) equal(other *Cost) bool {
	a, b := *c, *other
	a.Control, b.Control = nil, nil
	return maps.Equal(c.Control, other.Control) && fmt.Sprint(a) == fmt.Sprint(b)
}

// message sends one message and says what it cost.
func (r *rehearsal) message(from, to [][]byte, mtu int) (Cost, error) {
	cost := Cost{Control: map[string]int{}, mtu: mtu}
	r.count = &cost
	copied := r.copied()
	sender, receiver := r.ends[0], r.ends[1]
	s, v := &msg.Send{Pieces: from}, &msg.Receive{Pieces: to}
	begin, arrived := r.now, clock.Time(0)
	sender.sent, receiver.received = nil, nil
	if err := receiver.endpoint.Receive(r.now, v); err != nil {
		return cost, err
	}
	if err := sender.conn.Send(r.now, s); err != nil {
		return cost, err
	}
	r.arrived = func() { arrived = r.now }
	err := r.run()
	switch {
	case err != nil:
		return cost, err
	case sender.sent != s || s.Err != nil || receiver.received != v || v.Err != nil:
		return cost, fmt.Errorf("%w: %w, %w", errEndless, s.Err, v.Err)
	}
	cost.Copied = r.copied() - copied
	cost.Choice, cost.Ways = s.Choice, int((arrived-begin)/step)
	return cost, nil
}

// copied is how many bytes the processors of both ends have copied.
func (r *rehearsal) copied() (n int) {
	for _, a := range r.ends {
		count := a.endpoint.Snapshot()
		n += int(count[msg.BytesCopiedOut] + count[msg.BytesCopiedIn])
	}
	return n
}
