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
	begun     clock.Time
	first     int64      // time of the first packet in the capture
	due       clock.Time // of the packet that is next
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

// Run sends until the capture ends, Count is reached, or the context ends, which is no error. A
// capture that is damaged is sent up to there, and the error is that of its reader.
func (r *Replay) Run(ctx context.Context) (Replayed, error) {
	r.begun = r.Clock.Now()
	batch := make([]xsk.TxFrame, r.Batch)
	err := r.next(ctx)
	for err == nil && ctx.Err() == nil && (r.Count == 0 || r.result.Frames < r.Count) {
		if now := r.Clock.Now() - r.begun; r.due > now {
			r.Clock.Sleep(ctx, r.due-now)
			continue
		}
		err = r.send(ctx, batch)
	}
	r.result.Duration = r.Clock.Now() - r.begun
	if late := r.result.Duration - r.due; r.Speed > 0 && late > onTime {
		r.result.Late = late
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errStopped) {
		err = nil
	}
	r.result.From = r.From
	s := Sender{Link: r.Link, Clock: r.Clock, batch: batch}
	drained := s.drain(ctx)
	r.result.Dropped = s.result.Dropped
	return r.result, errors.Join(err, drained)
}

// send sends what is due, as much as a batch holds, and looks for the next packet. Where it has to
// wait for that, as for who writes into a pipe, what is due leaves before.
func (r *Replay) send(ctx context.Context, batch []xsk.TxFrame) (err error) {
	want := len(batch)
	if r.Count > 0 {
		want = int(min(uint64(want), r.Count-r.result.Frames))
	}
	got := r.Link.Reserve(batch[:want])
	now := r.Clock.Now() - r.begun
	n, waiting := 0, false
	for !waiting && n < got && err == nil && r.due <= now {
		f := &batch[n]
		if f.Len, err = r.write(f.Data); err != nil {
			break
		}
		if f.Len > 0 {
			n++
			r.result.Bytes += uint64(f.Len)
		}
		if waiting = r.Reader.Waiting(); !waiting {
			err = r.next(ctx)
		}
	}
	r.Link.Transmit(batch[:n])
	r.Link.Return(batch[n:got])
	r.result.Frames += uint64(n)
	if flush := r.Link.Flush(); flush != nil {
		return fmt.Errorf("send: %w", flush)
	}
	if waiting && err == nil && (r.Count == 0 || r.result.Frames < r.Count) {
		err = r.next(ctx)
	}
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

// lookEvery is after how many packets that are not sent the context is looked at.
const lookEvery = 256

// errStopped says that the context has ended.
var errStopped = errors.New("traffic: stopped")

// next looks for the next packet that is to be sent, and when that is.
func (r *Replay) next(ctx context.Context) error {
	for n := 1; n%lookEvery != 0 || ctx.Err() == nil; n++ {
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
			r.timed, r.first = true, p.Time
		}
		if r.Speed > 0 { // times of a capture may go back; those go at once
			r.due = max(r.due, clock.Time(float64(p.Time-r.first)/r.Speed))
		}
		return nil
	}
	return errStopped
}
