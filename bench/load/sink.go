package load

import (
	"io"
	"time"

	"xroce/bench/worker"
)

// Sink counts what arrives on the interface, in XDP, and drops it.
func Sink(o worker.Options, in io.Reader, out io.Writer) (worker.Report, error) {
	p, err := countAndDrop(o.Interface)
	if err != nil {
		return worker.Report{}, err
	}
	defer p.Close()
	if err := worker.Ready(in, out); err != nil {
		return worker.Report{}, err
	}
	w := worker.NewWindow(o)
	var total uint64
	last := w.Now()
	for {
		now := w.Now()
		n, err := p.count()
		if err != nil {
			return worker.Report{}, err
		}
		if n != total {
			total, last = n, now
		}
		if !w.Tick(now, n) && now-last > worker.Quiet {
			break
		}
		// The count is read at most this late; both borders are noted as read.
		time.Sleep(5 * time.Millisecond)
	}
	return report(o, w, total, "native drop", nil), nil
}

// Pass attaches a program that lets everything pass, until the go: the price that
// kernel sockets pay for any XDP program on the interface.
func Pass(o worker.Options, in io.Reader, out io.Writer) (worker.Report, error) {
	p, err := passAll(o.Interface)
	if err != nil {
		return worker.Report{}, err
	}
	defer p.Close()
	return worker.Report{Mode: "native pass"}, worker.Ready(in, out)
}

// report puts the common parts together.
func report(o worker.Options, w *worker.Window, total uint64, mode string,
	counters map[string]uint64,
) worker.Report {
	return worker.Report{
		Packets:  w.Packets(),
		Bytes:    w.Packets() * uint64(o.Size),
		Seconds:  w.Seconds(),
		Total:    total,
		Mode:     mode,
		Cost:     w.Cost(),
		Counters: counters,
	}
}
