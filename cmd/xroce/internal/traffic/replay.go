package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"

	"xroce/engine/capture/read"
	"xroce/roce/clock"
	"xroce/roce/dissect"
	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A Replay sends the RoCE packets that a host sent in a capture, in their time or faster.
type Replay struct {
	Link     xsk.Link
	From     wire.GID // whose packets; of the first RoCE packet when zero
	Reader   *read.Reader
	Rewriter *gen.Rewriter
	Speed    float64 // 2 for in half the time, 0 for as fast as it goes
	Count    uint64  // no more packets than that, 0 for all
	Batch    int     // most frames of one system call
	Clock    Clock

	dissector dissect.Dissector
	packet    read.Packet
	inside    dissect.Packet
	chosen    bool // From is known
	timed     bool // first is known
	atHand    bool // the packet that is next was read, and is not sent yet
	begun     clock.Time
	first     int64      // time of the first packet in the capture
	due       clock.Time // of the packet that is next
	late      clock.Time // how late the last packet was, or is
	result    Replayed
}

// Replayed is what came of a capture.
type Replayed struct {
	Sent
	From    wire.GID
	Read    uint64 // packets of the capture
	Others  uint64 // RoCE packets of other hosts
	Foreign uint64 // no RoCE packets
	Cut     uint64 // of which the capture lacks the end
	Long    uint64 // too long for the interface
	BadICRC uint64 // that had a wrong ICRC, and were sent with a wrong one
}

// onTime is how late the last packet may be and still be in its time: a sleep takes as long.
const onTime = clock.Millisecond

// Run sends until the capture ends, Count is reached, or the context ends, which is no error: only
// a read that waits is not interrupted. The time of the capture begins with the first packet that
// is sent. A capture that is damaged is sent up to there, and the error is that of its reader.
func (r *Replay) Run(ctx context.Context) (Replayed, error) {
	r.begun = r.Clock.Now()
	batch := make([]xsk.TxFrame, r.Batch)
	var err error
	for err == nil && ctx.Err() == nil && (r.Count == 0 || r.result.Frames < r.Count) {
		if !r.atHand {
			err = r.next(ctx, false)
			continue
		}
		if now := r.Clock.Now() - r.begun; r.due > now {
			r.Clock.Sleep(ctx, r.due-now)
			continue
		}
		err = r.send(ctx, batch)
	}
	r.result.Duration = r.Clock.Now() - r.begun
	if r.atHand { // it would still have to go
		r.late = r.result.Duration - r.due
	}
	if r.Speed > 0 && r.late > onTime {
		r.result.Late = r.late
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.result.From = r.From
	s := Sender{Link: r.Link, Clock: r.Clock, batch: batch}
	drained := s.drain(ctx)
	r.result.Dropped = s.result.Dropped
	return r.result, errors.Join(err, drained)
}

// send sends what is due of what was read, as much as a batch holds.
func (r *Replay) send(ctx context.Context, batch []xsk.TxFrame) (err error) {
	want := len(batch)
	if r.Count > 0 {
		want = int(min(uint64(want), r.Count-r.result.Frames))
	}
	got := r.Link.Reserve(batch[:want])
	now := r.Clock.Now() - r.begun
	n, due := 0, r.due
	for n < got && err == nil && r.atHand && r.due <= now {
		f := &batch[n]
		if f.Len, err = r.write(f.Data); err != nil {
			break
		}
		if f.Len > 0 {
			n++
			r.result.Bytes += uint64(f.Len)
		}
		due, r.atHand = r.due, false
		if n < got {
			err = r.next(ctx, true)
		}
	}
	r.Link.Transmit(batch[:n])
	r.Link.Return(batch[n:got])
	r.result.Frames += uint64(n)
	if flush := r.Link.Flush(); flush != nil {
		return fmt.Errorf("send: %w", flush)
	}
	r.late = r.Clock.Now() - r.begun - due
	return err
}

// write writes the frame of the packet that is next.
func (r *Replay) write(frame []byte) (int, error) {
	n, err := r.Rewriter.Write(frame, &r.inside.RoCE)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		r.result.Long++
	case r.inside.ICRC == dissect.Bad:
		r.result.BadICRC++
		frame[n-1] ^= 0xff
	}
	return n, nil
}

// lookEvery is after how many packets of a capture the context is looked at. It has a lock, which
// would cost as much as a packet.
const lookEvery = 256

// next looks for the next packet that is to be sent, and when that is. It finds none, which is no
// error, where the context ends and, if frames are written that have to leave first, before it
// waits for who writes the capture.
func (r *Replay) next(ctx context.Context, written bool) error {
	for !written || !r.Reader.Waiting() {
		if r.result.Read%lookEvery == 0 && ctx.Err() != nil {
			break
		}
		if err := r.Reader.Next(&r.packet); err != nil {
			return err
		}
		p, in := &r.packet, &r.inside
		r.dissector.Now = clock.Time(p.Time)
		r.dissector.Dissect(p.Link, p.Data, p.Length, in)
		r.result.Read++
		switch {
		case !in.IsRoCE:
			r.result.Foreign++
			continue
		case in.Snapped:
			r.result.Cut++
			continue
		}
		if !r.chosen && r.From.IsZero() {
			r.From = in.RoCE.Src
		}
		r.chosen = true
		if in.RoCE.Src != r.From {
			r.result.Others++
			continue
		}
		if !r.timed {
			r.timed, r.first, r.begun = true, p.Time, r.Clock.Now()
		}
		if r.Speed > 0 { // times of a capture may go back; those go at once
			r.due = max(r.due, clock.Time(float64(p.Time-r.first)/r.Speed))
		}
		r.atHand = true
		break
	}
	return nil
}
