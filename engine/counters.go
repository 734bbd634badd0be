package engine

import (
	"xroce/bpf"
	"xroce/roce/counter"
	"xroce/roce/wire"
	"xroce/xsk"
)

// A Counter is one value of the device with what it means. Names are stable.
type Counter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
	Unit  string `json:"unit"`
	Help  string `json:"help"`
}

// linkCounters declares the counters of a link, under the kernel's names where
// the kernel counts.
var linkCounters = [...]struct {
	name, unit, help string
	value            func(*xsk.Stats) uint64
}{
	{
		"rx_packets", "frames", "frames that the link received",
		func(s *xsk.Stats) uint64 { return s.RxPackets },
	},
	{
		"rx_bytes", "bytes", "bytes of those",
		func(s *xsk.Stats) uint64 { return s.RxBytes },
	},
	{
		"tx_packets", "frames", "frames given to the link",
		func(s *xsk.Stats) uint64 { return s.TxPackets },
	},
	{
		"tx_bytes", "bytes", "bytes of those",
		func(s *xsk.Stats) uint64 { return s.TxBytes },
	},
	{
		"rx_dropped", "frames", "no receive frame, or one too small",
		func(s *xsk.Stats) uint64 { return s.RxDropped },
	},
	{
		"rx_invalid_descs", "descriptors", "receive descriptors that the kernel refused",
		func(s *xsk.Stats) uint64 { return s.RxInvalidDescs },
	},
	{
		"tx_invalid_descs", "descriptors", "transmit descriptors that the kernel refused",
		func(s *xsk.Stats) uint64 { return s.TxInvalidDescs },
	},
	{
		"rx_ring_full", "frames", "lost because we were too slow",
		func(s *xsk.Stats) uint64 { return s.RxRingFull },
	},
	{
		"rx_fill_ring_empty_descs", "frames", "lost because we gave too few frames",
		func(s *xsk.Stats) uint64 { return s.RxFillRingEmptyDescs },
	},
	{
		"tx_ring_empty_descs", "calls", "send calls that drained the ring, not a fault",
		func(s *xsk.Stats) uint64 { return s.TxRingEmptyDescs },
	},
	{
		"kernel_faults", "entries", "ring entries that name a frame the kernel did not hold",
		func(s *xsk.Stats) uint64 { return s.KernelFaults },
	},
	{
		"rx_oversize", "frames", "dropped because longer than two chunks",
		func(s *xsk.Stats) uint64 { return s.RxOversize },
	},
	{
		"tx_kicks", "calls", "send calls",
		func(s *xsk.Stats) uint64 { return s.TxKicks },
	},
	{
		"rx_kicks", "calls", "receive calls that woke the driver",
		func(s *xsk.Stats) uint64 { return s.RxKicks },
	},
	{
		"tx_again", "calls", "send calls that had to be repeated (EAGAIN)",
		func(s *xsk.Stats) uint64 { return s.TxAgain },
	},
	{
		"tx_busy", "frames", "dropped by the device (EBUSY)",
		func(s *xsk.Stats) uint64 { return s.TxBusy },
	},
	{
		"tx_no_bufs", "calls", "send calls without kernel memory (ENOBUFS)",
		func(s *xsk.Stats) uint64 { return s.TxNoBufs },
	},
	{
		"tx_net_down", "calls", "send calls on an interface that is down (ENETDOWN)",
		func(s *xsk.Stats) uint64 { return s.TxNetDown },
	},
	{
		"tx_outstanding_descs", "descriptors", "given to the link and not back, now",
		func(s *xsk.Stats) uint64 { return s.TxOutstanding },
	},
}

// Counters reads every counter of the device: the transport's, the decoder's,
// the link's and the XDP program's.
func (d *Device) Counters() ([]Counter, error) {
	t, err := d.totals()
	if err != nil {
		return nil, err
	}
	var list []Counter
	for id := range counter.Count {
		s := id.Spec()
		list = append(list, Counter{s.Name, t.count[id], s.Unit, s.Help})
	}
	for reason, n := range t.drops {
		// These two are found by the QP, which counts them itself.
		if r := wire.Reason(reason); r != wire.OK && r != wire.BadICRC && r != wire.BadVCRC {
			list = append(list,
				Counter{"drop_" + r.String(), n, "packets", "refused by the decoder"})
		}
	}
	list = append(list, Counter{
		"loopback_packets", t.looped, "packets", "sent by one QP of the device to another",
	}, Counter{
		"handover_packets", t.handover.frames, "packets",
		"came to the queue of another driver than that of their QP, and were handed over",
	}, Counter{
		handoverNoRoom, t.handover.noRoom, "packets",
		"lost because the driver that they were to be handed over to was too slow",
	}, Counter{
		"qp_moves", d.moves.count.Load(), "queue pairs",
		"moved to the driver whose queues most of their packets came to",
	}, Counter{
		"sq_posted", t.posted, "work requests", "posted to send queues and not complete, now",
	}, Counter{
		"port_xmit_discards", t.discards, "frames", "not sent: the interface was down or reset",
	})
	list = append(list, d.resets.counters()...)
	if d.lossyTap != nil {
		list = append(list, Counter{
			"tap_dropped", d.lossyTap.Dropped(), "frames", "missing in the capture, which is slow",
		})
	}
	list = append(list, d.paging.counters()...)
	list = append(list, d.native.counters()...)
	for i, c := range linkCounters {
		list = append(list, Counter{c.name, t.link[i], c.unit, c.help})
	}
	if d.program == nil {
		return list, nil
	}
	program, err := d.program.Counters()
	if err != nil {
		return nil, err
	}
	for reason, c := range program {
		name := "xdp_" + bpf.Reason(reason).String()
		list = append(list, Counter{name, c.Packets, "packets", "verdicts of the XDP program"})
	}
	return list, nil
}

// LinkCounters are the counters of a link, under the names that they have among those of a
// device.
func LinkCounters(stats *xsk.Stats) []Counter {
	list := make([]Counter, 0, len(linkCounters))
	for _, c := range linkCounters {
		list = append(list, Counter{c.name, c.value(stats), c.unit, c.help})
	}
	return list
}

// totals are the counters of all queues together.
type totals struct {
	count  counter.Set
	drops  [wire.NumReasons]uint64
	looped uint64
	posted uint64 // work requests in send queues
	// handover is what drivers gave each other.
	handover handover
	// discards are frames that were not sent because nothing could be.
	discards uint64
	link     [len(linkCounters)]uint64
}

// totals adds up what the queues have counted.
func (d *Device) totals() (*totals, error) {
	t := new(totals)
	for _, q := range d.queues {
		if err := t.add(q); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// add adds the counters of a queue.
func (t *totals) add(q *queue) error {
	q.lock()
	defer q.mu.Unlock()
	stats, err := q.link.Stats()
	if err != nil {
		return err
	}
	t.handover.frames += q.handover.frames
	t.handover.noRoom += q.handover.noRoom
	count := q.allCounts()
	t.count.Merge(&count)
	for reason, n := range q.drops {
		t.drops[reason] += n
	}
	t.looped += q.loop.total
	for _, qp := range q.device.qps.All {
		if qp.home() == q {
			t.posted += uint64(qp.core.Snapshot().SendPosted)
		}
	}
	for i, c := range linkCounters {
		t.link[i] += q.past[i] + c.value(&stats)
	}
	t.discards += q.link.discards
	return nil
}
