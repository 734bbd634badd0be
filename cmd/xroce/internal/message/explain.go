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
	Connection Cost // before the first message
	Plans      []Plan
}

// maxRehearsed is how many messages are looked at, at most.
const maxRehearsed = 64

// MaxPieces is how many pieces a message may have.
const MaxPieces = 1 << 10

// Explain says how messages travel whose pieces have these lengths, each sent after the one before
// it has arrived, and its receive posted before it. The error is ErrConfig, or that of msg.New.
func Explain(c msg.Config, pieces []int) (*Explanation, error) {
	e := &Explanation{Pieces: pieces}
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
	e.Connection.Control = map[string]int{}
	if err := r.run(); err != nil {
		return nil, err
	}
	e.Config = r.ends[0].endpoint.Config()
	from, to := split(pieces, e.Size), split([]int{e.Size}, e.Size)
	for n := 1; n <= min(e.Config.After+3, maxRehearsed); n++ {
		cost, err := r.message(from, to)
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
func (r *rehearsal) message(from, to [][]byte) (Cost, error) {
	cost := Cost{Control: map[string]int{}}
	r.count = &cost
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
	cost.Choice, cost.Ways = s.Choice, int((arrived-begin)/step)
	return cost, nil
}
