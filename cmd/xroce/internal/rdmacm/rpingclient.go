package rdmacm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/cmd/xroce/internal/plain"
)

// errMismatch says that what came back is not what was sent.
var errMismatch = errors.New("data mismatch")

// DialRping is the client of a server. With an error, too, it tells of the rounds before.
func (s *Station) DialRping(ctx context.Context, c Rping) (Result, error) {
	p, err := s.newPinger(c, true)
	if err != nil {
		return Result{}, err
	}
	if p.conn, err = s.dial(ctx, c.Addr, p.setup()); err != nil {
		return Result{}, err
	}
	defer p.hangUp(ctx)
	times := newRoundTrips()
	for c.Count == 0 || p.rounds < c.Count {
		start := time.Now()
		if err = p.ping(ctx); err != nil {
			err = fmt.Errorf("ping %d: %w", p.rounds, err)
			break
		}
		times.add(time.Since(start))
		p.rounds++
	}
	return Result{Connections: 1, Messages: p.rounds, RoundTrip: times.result()}, err
}

// ping is one round of a client.
func (p *pinger) ping(ctx context.Context) error {
	out, back := p.start.Bytes(), p.data.Bytes()
	putPing(out, p.rounds)
	clear(back)
	err := p.tell(info{buf: p.start.Addr(), rkey: p.start.RKey(), size: uint32(p.Size)})
	if err != nil {
		return err
	}
	if _, err := p.hear(ctx); err != nil {
		return err
	}
	err = p.tell(info{buf: p.data.Addr(), rkey: p.data.RKey(), size: uint32(p.Size)})
	if err != nil {
		return err
	}
	if _, err := p.hear(ctx); err != nil {
		return err
	}
	if p.Validate && !bytes.Equal(out, back) {
		return errMismatch
	}
	if p.Verbose {
		p.station.Say("ping data: %s\n", plain.Text(string(text(back))))
	}
	return nil
}

// Characters of a text, the first and how many.
const (
	firstChar = 'A'
	chars     = 'z' - 'A' + 1
)

// putPing writes the text of a round: its name, characters in their order, which
// begin with another one each round, and a zero byte.
func putPing(b []byte, round int) {
	n := copy(b, fmt.Sprintf("rdma-ping-%d: ", round))
	for i := range b[n:] {
		b[n+i] = byte(firstChar + (round+i)%chars)
	}
	b[len(b)-1] = 0
}
