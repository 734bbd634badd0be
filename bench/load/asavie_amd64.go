package load

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// maxTxSkbBudget is XDP_MAX_TX_SKB_BUDGET (kernel include/uapi/linux/if_xdp.h).
const maxTxSkbBudget = 9

// Asavie does the work of o.Mode, "tx", "rx" or "fwd", over a socket of
// github.com/asavie/xdp. What it needs to be driven safely is in the README of
// bench: among it, one process for each measurement, both rings always, Poll
// after each batch, and a net under Transmit, which panics on errors.
func Asavie(o worker.Options, in io.Reader, out io.Writer) (r worker.Report, err error) {
	run, ok := map[string]func(*xdp.Socket, worker.Options) (*worker.Window, uint64, error){
		"tx": asavieSend, "rx": asavieReceive, "fwd": asavieForward,
	}[o.Mode]
	if !ok {
		return r, fmt.Errorf("load: asavie/xdp has no mode %q", o.Mode)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("load: asavie/xdp panicked: %v", p)
		}
	}()
	s, err := asavieOpen(o)
	if err != nil {
		return r, err
	}
	defer s.Close()
	name := "copy"
	if o.Mode != "tx" {
		nic, err := net.InterfaceByName(o.Interface)
		if err != nil {
			return r, fmt.Errorf("load: %w", err)
		}
		p, err := asavieProgram(nic.Index, o.Queue, s.FD())
		if err != nil {
			return r, err
		}
		// Attached over netlink: it would outlive the process.
		defer func() { err = errors.Join(err, p.Detach(nic.Index), p.Close()) }()
		name = "native copy"
	}
	if err := worker.Ready(in, out); err != nil {
		return r, err
	}
	w, total, err := run(s, o)
	if err != nil {
		return r, err
	}
	st, err := s.Stats()
	if err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	k := st.KernelStats
	return report(o, w, total, name, map[string]uint64{
		"rx_dropped":               k.Rx_dropped,
		"rx_invalid_descs":         k.Rx_invalid_descs,
		"tx_invalid_descs":         k.Tx_invalid_descs,
		"rx_ring_full":             k.Rx_ring_full,
		"rx_fill_ring_empty_descs": k.Rx_fill_ring_empty_descs,
		"tx_ring_empty_descs":      k.Tx_ring_empty_descs,
	}), nil
}

// asavieOpen makes a socket with our sizes. Both rings are always on: without
// one, Poll and Stats of the package dereference nil.
func asavieOpen(o worker.Options) (*xdp.Socket, error) {
	nic, err := net.InterfaceByName(o.Interface)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	xdp.DefaultSocketFlags = unix.XDP_COPY | unix.XDP_USE_NEED_WAKEUP
	options := &xdp.SocketOptions{
		NumFrames:              o.RxFrames + o.TxFrames,
		FrameSize:              4096,
		FillRingNumDescs:       spare * o.RxFrames,
		CompletionRingNumDescs: spare * o.RxFrames,
		RxRingNumDescs:         o.RxFrames,
		TxRingNumDescs:         spare * o.RxFrames,
	}
	var s *xdp.Socket
	// The last owner of the queue may still be leaving. The package hides the
	// errno, so every error is tried again for as long as xsk.Open would.
	end := time.Now().Add(bindTimeout())
	for ; ; time.Sleep(10 * time.Millisecond) {
		if s, err = xdp.NewSocket(nic.Index, o.Queue, options); err == nil {
			break
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("load: asavie/xdp: %w", err)
		}
	}
	fd := s.FD()
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, o.SendBuf)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_XDP, maxTxSkbBudget, o.Budget)
	}
	if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
		return nil, errors.Join(fmt.Errorf("load: socket options: %w", err), s.Close())
	}
	return s, nil
}

// asavieProgram attaches the program of the package, which takes all frames of
// the queue.
func asavieProgram(ifindex, queue, fd int) (*xdp.Program, error) {
	p, err := xdp.NewProgram(queue + 1)
	if err != nil {
		return nil, fmt.Errorf("load: asavie/xdp: %w", err)
	}
	if err := p.Attach(ifindex); err != nil {
		return nil, errors.Join(fmt.Errorf("load: asavie/xdp: %w", err), p.Close())
	}
	if err := p.Register(queue, fd); err != nil {
		err = fmt.Errorf("load: asavie/xdp: %w", err)
		return nil, errors.Join(err, p.Detach(ifindex), p.Close())
	}
	return p, nil
}

// milliseconds is waitStep as Poll wants it.
const milliseconds = int(waitStep / time.Millisecond)

func asavieSend(s *xdp.Socket, o worker.Options) (*worker.Window, uint64, error) {
	all := s.GetDescs(o.TxFrames)
	for _, d := range all {
		copy(s.GetFrame(d), o.Header)
	}
	var queued uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), queued) {
		// No more than TxFrames on their way, as with the others.
		descs := s.GetDescs(min(o.Batch, o.TxFrames-s.NumTransmitted()))
		for i := range descs {
			descs[i].Len = uint32(o.Size)
		}
		queued += uint64(s.Transmit(descs))
		if _, _, err := s.Poll(0); err != nil {
			return nil, 0, fmt.Errorf("load: %w", err)
		}
	}
	end := time.Now().Add(timeout.Scaled(worker.Drain))
	for s.NumTransmitted() > 0 && time.Now().Before(end) {
		if _, _, err := s.Poll(milliseconds); err != nil {
			return nil, 0, fmt.Errorf("load: %w", err)
		}
	}
	return w, queued - uint64(s.NumTransmitted()), nil
}

// asavieFill gives free frames to the kernel, as many as o.RxFrames in all.
func asavieFill(s *xdp.Socket, o worker.Options) {
	s.Fill(s.GetDescs(min(s.NumFreeFillSlots(), o.RxFrames-s.NumFilled())))
}

func asavieReceive(s *xdp.Socket, o worker.Options) (*worker.Window, uint64, error) {
	var total, seen uint64
	w := worker.NewWindow(o)
	last := w.Now()
	for {
		now := w.Now()
		open := w.Tick(now, total)
		asavieFill(s, o)
		n := s.NumReceived()
		for _, d := range s.Receive(min(n, o.Batch)) {
			seen += uint64(s.GetFrame(d)[0]) // read before the next Fill gives it away
			total++
		}
		switch {
		case n > 0:
			last = now
		case !open && now-last > worker.Quiet:
			if total > 0 && seen == 0 {
				return nil, 0, errZeros
			}
			return w, total, nil
		default:
			if _, _, err := s.Poll(milliseconds); err != nil {
				return nil, 0, fmt.Errorf("load: %w", err)
			}
		}
	}
}

func asavieForward(s *xdp.Socket, o worker.Options) (*worker.Window, uint64, error) {
	var total uint64
	w := worker.NewWindow(o)
	last := w.Now()
	for {
		now := w.Now()
		open := w.Tick(now, total)
		asavieFill(s, o)
		timeout := 0
		if s.NumReceived() == 0 && s.NumTransmitted() == 0 {
			timeout = milliseconds
		}
		n, _, err := s.Poll(timeout)
		if err != nil {
			return nil, 0, fmt.Errorf("load: %w", err)
		}
		descs := s.Receive(min(n, o.Batch))
		for _, d := range descs {
			reflect(s.GetFrame(d))
		}
		total += uint64(len(descs))
		if len(descs) > 0 {
			s.Transmit(descs) // the ring has room for every frame
			last = now
			continue
		}
		if !open && now-last > worker.Quiet {
			return w, total, nil
		}
	}
}
