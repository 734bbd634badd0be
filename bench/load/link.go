package load

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"xroce/bench/worker"
	"xroce/xsk"
	"xroce/xsk/xsktest/timeout"
)

// spare is how many times the receive frames the rings but RX have entries: room
// for every frame and then some. The C peer has the same.
const spare = 2

// retry is how long a ping waits for its answer before the next is sent.
const retry = 100 * time.Millisecond

// waitStep bounds a receiver's sleep, so that it sees the end of its window.
const waitStep = 10 * time.Millisecond

// modes of a socket of ours. Send works without an XDP program on its interface;
// the others take every frame that arrives.
var modes = map[string]struct {
	redirect bool
	run      func(*xsk.Socket, worker.Options) (*worker.Window, uint64, *worker.RTT, error)
}{
	"tx":  {false, send},
	"gen": {false, generate},
	"rx":  {true, receive},
	"fwd": {true, forward},

	"tx-placed": {false, gathered},
	"rx-placed": {true, placed},

	"echo":       {true, echo},
	"ping":       {true, ping(true)},
	"echo-sleep": {true, forward},
	"ping-sleep": {true, ping(false)},
}

// bindTimeout is how long the last owner of a queue may take to leave.
func bindTimeout() time.Duration { return timeout.Scaled(xsk.DefaultBindTimeout) }

// Ours does the work of o.Mode over a socket of package xsk.
func Ours(o worker.Options, in io.Reader, out io.Writer) (worker.Report, error) {
	mode, ok := modes[o.Mode]
	if !ok {
		return worker.Report{}, fmt.Errorf("load: no mode %q", o.Mode)
	}
	s, err := xsk.Open(xsk.Config{
		Interface: o.Interface, Queue: o.Queue,
		RxFrames: o.RxFrames, TxFrames: o.TxFrames,
		RxRing: o.RxFrames, FillRing: spare * o.RxFrames,
		TxRing: spare * o.RxFrames, CompletionRing: spare * o.RxFrames,
		Mode: xsk.ModeCopy, SndBuf: o.SendBuf, TxBudget: o.Budget, Dedicated: true,
		BindTimeout: bindTimeout(),
	})
	if err != nil {
		return worker.Report{}, err
	}
	defer s.Close()
	if o.Size > s.Info().MaxFrame {
		return worker.Report{}, fmt.Errorf("load: frames of %d bytes, %s takes %d",
			o.Size, o.Interface, s.Info().MaxFrame)
	}
	name := "copy"
	if mode.redirect {
		p, err := redirectAll(o.Interface, o.Queue, s.FD())
		if err != nil {
			return worker.Report{}, err
		}
		defer p.Close()
		name = "native copy"
	}
	if err := imprint(s, o); err != nil {
		return worker.Report{}, err
	}
	if err := worker.Ready(in, out); err != nil {
		return worker.Report{}, err
	}
	w, total, rtt, err := mode.run(s, o)
	if err != nil {
		return worker.Report{}, err
	}
	st, err := s.Stats()
	if err != nil {
		return worker.Report{}, err
	}
	r := report(o, w, total, name, counters(st))
	r.RTT = rtt
	return r, nil
}

// imprint writes the header into every transmit frame.
func imprint(l xsk.Link, o worker.Options) error {
	frames := make([]xsk.TxFrame, l.Info().TxFrames)
	if n := l.Reserve(frames); n != len(frames) {
		return fmt.Errorf("load: %d of %d transmit frames are free at the start", n, len(frames))
	}
	for i := range frames {
		copy(frames[i].Data, o.Header)
	}
	l.Return(frames)
	return nil
}

func send(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return sendEach(s, o, nil)
}

// sendEach sends frames as fast as it goes. fill, if there is one, writes each of them.
func sendEach(s *xsk.Socket, o worker.Options, fill func(frame []byte)) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	batch := make([]xsk.TxFrame, o.Batch)
	var queued uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), queued) {
		n := s.Reserve(batch)
		for i := range batch[:n] {
			batch[i].Len = o.Size
			if fill != nil {
				fill(batch[i].Data[:o.Size])
			}
		}
		s.Transmit(batch[:n])
		queued += uint64(n)
		if err := s.Flush(); err != nil {
			return nil, 0, nil, err
		}
	}
	unsent, err := drainTx(s)
	return w, queued - unsent, nil, err
}

// drainTx waits until every frame is sent, and returns how many are not after
// all.
func drainTx(s *xsk.Socket) (uint64, error) {
	frames := make([]xsk.TxFrame, s.Info().TxFrames)
	back := 0
	end := time.Now().Add(timeout.Scaled(worker.Drain))
	for back < len(frames) && time.Now().Before(end) {
		if err := s.Flush(); err != nil {
			return 0, err
		}
		back += s.Reserve(frames[back:])
	}
	s.Return(frames[:back])
	return uint64(len(frames) - back), nil
}

// errZeros means that frames came without the bytes that were sent.
var errZeros = errors.New("load: only zeros came")

func receive(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	var seen uint64
	w, total, rtt, err := receiveEach(s, o, nil, func(f *xsk.RxFrame) bool {
		seen += uint64(f.Head[0])
		return true
	})
	if total > 0 && seen == 0 {
		return nil, 0, nil, errZeros
	}
	return w, total, rtt, err
}

// receiveEach receives frames and counts those that take accepts, until none came for a while.
// That it accepted none of all that came is the error none.
func receiveEach(s *xsk.Socket, o worker.Options, none error, take func(*xsk.RxFrame) bool) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	batch := make([]xsk.RxFrame, o.Batch)
	var total, refused uint64
	w := worker.NewWindow(o)
	last := w.Now()
	for {
		now := w.Now()
		open := w.Tick(now, total)
		n := s.Receive(batch)
		for i := range batch[:n] {
			if take(&batch[i]) {
				total++
			} else {
				refused++
			}
		}
		s.Release(batch[:n])
		switch {
		case n > 0:
			last = now
		case !open && now-last > worker.Quiet:
			if total == 0 && refused > 0 {
				return nil, 0, nil, none
			}
			return w, total, nil, nil
		default:
			if err := s.Wait(waitStep); err != nil {
				return nil, 0, nil, err
			}
		}
	}
}

func forward(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return bounce(s, o, false)
}

func echo(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	return bounce(s, o, true)
}

// bounce sends every frame back, in place. It spins for latency, and else sleeps
// while there is nothing to do.
func bounce(s *xsk.Socket, o worker.Options, spin bool) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	batch := make([]xsk.RxFrame, o.Batch)
	var total uint64
	w := worker.NewWindow(o)
	last := w.Now()
	for {
		now := w.Now()
		open := w.Tick(now, total)
		n := s.Receive(batch)
		for i := range batch[:n] {
			reflect(batch[i].Head)
		}
		total += uint64(s.Forward(batch[:n]))
		if n > 0 || s.Pending() {
			last = now
			if err := s.Flush(); err != nil {
				return nil, 0, nil, err
			}
		}
		s.Reserve(nil) // takes sent frames back
		switch {
		case n > 0 || spin && open:
		case !open && now-last > worker.Quiet:
			return w, total, nil, nil
		case !spin && !s.Pending():
			if err := s.Wait(waitStep); err != nil {
				return nil, 0, nil, err
			}
		}
	}
}

// ping sends a frame and waits for it to come back, spinning or asleep.
func ping(spin bool) func(*xsk.Socket, worker.Options) (
	*worker.Window, uint64, *worker.RTT, error,
) {
	return func(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
		hist := hdrhistogram.New(1, int64(10*time.Second), 3)
		frame, answer := make([]xsk.TxFrame, 1), make([]xsk.RxFrame, o.Batch)
		var total uint64
		w := worker.NewWindow(o)
		for w.Tick(w.Now(), total) {
			sent := w.Now()
			n := s.Reserve(frame)
			for i := range frame[:n] {
				frame[i].Len = o.Size
			}
			s.Transmit(frame[:n])
			if err := s.Flush(); err != nil {
				return nil, 0, nil, err
			}
			rtt, err := awaitFrame(s, answer, w, sent, spin)
			if err != nil {
				return nil, 0, nil, err
			}
			if rtt == 0 {
				continue
			}
			total++
			if w.Open() {
				// Ten seconds is a hundred times the longest wait: it always fits.
				_ = hist.RecordValue(rtt.Nanoseconds())
			}
		}
		return w, total, roundTrips(hist), nil
	}
}

// awaitFrame returns how long after sent a frame came, 0 when none did.
func awaitFrame(s *xsk.Socket, room []xsk.RxFrame, w *worker.Window, sent time.Duration,
	spin bool,
) (time.Duration, error) {
	for rtt := time.Duration(0); rtt < retry; {
		n := s.Receive(room)
		rtt = w.Now() - sent
		if n > 0 {
			s.Release(room[:n])
			return rtt, nil
		}
		if spin {
			continue
		}
		if err := s.Wait(waitStep); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// roundTrips reads a histogram of nanoseconds.
func roundTrips(h *hdrhistogram.Histogram) *worker.RTT {
	return &worker.RTT{
		Samples: uint64(h.TotalCount()),
		P50:     h.ValueAtQuantile(50),
		P90:     h.ValueAtQuantile(90),
		P99:     h.ValueAtQuantile(99),
		P999:    h.ValueAtQuantile(99.9),
		Max:     h.Max(),
	}
}

// counters names what a socket of ours counted as the C peer names it.
func counters(st xsk.Stats) map[string]uint64 {
	return map[string]uint64{
		"rx_dropped":               st.RxDropped,
		"rx_invalid_descs":         st.RxInvalidDescs,
		"tx_invalid_descs":         st.TxInvalidDescs,
		"rx_ring_full":             st.RxRingFull,
		"rx_fill_ring_empty_descs": st.RxFillRingEmptyDescs,
		"tx_ring_empty_descs":      st.TxRingEmptyDescs,
		"tx_kicks":                 st.TxKicks,
		"tx_again":                 st.TxAgain,
		"tx_busy":                  st.TxBusy,
		"tx_nobufs":                st.TxNoBufs,
		"rx_oversize":              st.RxOversize,
	}
}
