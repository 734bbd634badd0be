package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine"
	"xroce/engine/capture"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// A scene shows one service, or one thing that the services share.
type scene struct {
	name string
	what string // what it shows, in one line
	play func(context.Context, *cast) error
}

// scenes are what is shown of the transport, in this order.
var scenes = []scene{
	{
		"RC", "SEND, WRITE, also with immediate, inline, SEND_WITH_INV, READ: every byte",
		playRC,
	},
	{
		"atomics", "FETCH_AND_ADD, CMP_AND_SWP that swaps and that does not, ATOMIC_WRITE, FLUSH",
		playAtomics,
	},
	{"keys", "SEND_WITH_INV takes a key out of use: the next WRITE with it is refused", playKeys},
	{
		"windows", "a memory window is revoked while WRITEs come through it, and granted anew",
		playWindows,
	},
	{
		"layouts", "a matrix column under one key: sent into a row, written into columns, read",
		playMatrix,
	},
	{
		"paging", "memory nobody touched is written to, taken away, prefetched, read, closed",
		playPaging,
	},
	{"UC", "SEND, WRITE, both also with immediate, from 0 bytes to 64 KiB: every byte", playUC},
	{"UD", "datagrams both ways, answered by their GRH; a wrong Q_Key is dropped", playUD},
	{"SRQ", "three QPs take from one shared receive queue, which tells when it runs low", playSRQ},
	{"XRC", "one connection fills two shared receive queues of the peer, and reads", playXRC},
	{"messages", "of any size, by each protocol: every byte", playMessages},
	{"encap", "Ethernet frames and IP packets in the headers of InfiniBand: every byte", playEncap},
}

// The cast is the two hosts and what is noted of their play.
type cast struct {
	*hosts
	tally
	sizes []int
	notes []string // what a scene has to tell
	talks []*talk  // what must be in the capture

	speeches []*speech // of messages, which must be there, too
	natives  [][]byte  // and frames with native packets
}

// join connects a QP of each host for a scene.
func (c *cast) join(
	ctx context.Context, rights mem.Access, init [2]engine.QPInit,
) (*pair, *talk, error) {
	p, err := c.connect(ctx, rights, init)
	if err != nil {
		return nil, nil, err
	}
	return p, c.listen(p), nil
}

// listen notes what a pair of QPs carries from now on.
func (c *cast) listen(p *pair) *talk {
	t := &talk{pmtu: c.dev[0].ActiveMTU(), service: services[p.end[0].QP.Type()]}
	for host, end := range p.end {
		t.qpn[host], t.first[host] = end.QP.QPN(), end.QP.Query().SQPSN
	}
	c.talks = append(c.talks, t)
	return t
}

// both makes two QPs of one type.
func both(t roce.QPType) [2]engine.QPInit {
	i := engine.QPInit{Type: t, MaxInline: maxInline}
	return [2]engine.QPInit{i, i}
}

// services are the transport services of the QPs that are shown.
var services = map[roce.QPType]wire.Service{
	roce.TypeRC: wire.ServiceRC, roce.TypeUC: wire.ServiceUC, roce.TypeUD: wire.ServiceUD,
	roce.TypeXRCSend: wire.ServiceXRC,
}

// captureBuffer has room for all that the scenes send, some 10 MiB at most: every packet is
// looked for afterwards.
const captureBuffer = 64 << 20

// A tap writes frames to a capture while it is on.
type tap struct {
	w  atomic.Pointer[capture.Writer] // nil until the devices are open
	on atomic.Bool
}

// Frame implements engine.Tap.
func (t *tap) Frame(dir capture.Direction, head, tail []byte) {
	if t.on.Load() {
		t.w.Load().Frame(time.Now(), dir, head, tail)
	}
}

// Dropped implements engine.LossyTap.
func (t *tap) Dropped() uint64 {
	if w := t.w.Load(); w != nil {
		return w.Dropped()
	}
	return 0
}

// showScenes plays all scenes. The packets go to the capture.
func showScenes(ctx context.Context, o *Options, w *cable, t tally) (_ *cast, err error) {
	file, err := userfile.Open(o.Capture)
	if err != nil {
		return nil, err
	}
	tap := &tap{}
	device := o.Device
	device.RawPackets = true // native packets are frames of their own EtherType
	h, err := w.openBoth(device, tap)
	if err != nil {
		file.Abandon()
		return nil, err
	}
	defer file.Close()
	if err := file.Begin(); err != nil {
		return nil, errors.Join(err, h.close())
	}
	writer := capture.NewWriter(file, "xroce-demo", captureBuffer)
	defer func() { err = errors.Join(err, writer.Close()) }()
	defer func() { err = errors.Join(err, h.close()) }()
	tap.w.Store(writer)
	t.report.Wire = describe(o, w, h.dev[0])
	o.Started(t.report.Wire)
	o.Hook(StageOperations)
	tap.on.Store(true)
	c := &cast{hosts: h, tally: t, sizes: o.Sizes}
	for _, s := range scenes {
		before := t.report.Passed + t.report.Failed
		if err := s.play(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		t.report.Scenes = append(t.report.Scenes, Scene{
			Name: s.name, What: s.what, Checks: t.report.Passed + t.report.Failed - before,
			Notes: c.notes,
		})
		c.notes = nil
	}
	tap.on.Store(false)
	if err := writer.Close(); err != nil {
		return nil, err
	}
	if n := writer.Dropped(); n > 0 {
		return nil, fmt.Errorf("capture: %s is too slow: %d of %d packets are missing",
			o.Capture, n, n+writer.Frames())
	}
	return c, nil
}

// operations are those of a reliable connection that move any number of bytes.
var operations = []roce.Opcode{
	roce.OpSend, roce.OpSendImm, roce.OpSendInv, roce.OpWrite, roce.OpWriteImm, roce.OpRead,
}

// playRC carries out every operation at every size over a reliable connection.
func playRC(ctx context.Context, c *cast) error {
	p, talk, err := c.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	for _, size := range c.sizes {
		x, err := newExchange(p, c.tally, talk, size)
		if err != nil {
			return err
		}
		for _, op := range operations {
			if err := x.run(ctx, op, false); err != nil {
				return err
			}
		}
		if size <= maxInline {
			for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite} {
				if err := x.run(ctx, op, true); err != nil {
					return err
				}
			}
		}
		x.close()
	}
	return nil
}

// maxUnreliable bounds the messages over UC. A message of which one packet is
// lost is lost.
const maxUnreliable = 64 << 10

// playUC carries out what an unreliable connection can.
func playUC(ctx context.Context, c *cast) error {
	p, talk, err := c.join(ctx, allRights, both(roce.TypeUC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	sizes := []int{0}
	for _, size := range c.sizes {
		sizes = append(sizes, min(size, maxUnreliable))
	}
	for _, size := range slices.Compact(sizes) {
		x, err := newExchange(p, c.tally, talk, size)
		if err != nil {
			return err
		}
		for _, op := range []roce.Opcode{
			roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm,
		} {
			if err := x.run(ctx, op, false); err != nil {
				return err
			}
		}
		x.close()
	}
	return nil
}
