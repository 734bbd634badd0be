package msg_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/roce/mem"
	rmsg "xroce/roce/msg"
)

// A laid is memory that a layout puts together, and what that should be: byte i of a message is
// base[order[i]].
type laid struct {
	base  []byte
	order []int
	span  msg.Span
	mrs   []*engine.MR // the last one first
	pds   []*engine.PD
}

// A maker makes memory and registers it.
type maker struct {
	allocate func(n int) []byte
	register func(dev *engine.Device, pd *engine.PD, b []byte) (*engine.MR, error)
	// drop makes part of the memory absent, which it says, and zero; nil for memory that stays.
	drop func(b []byte) (from, to int)
}

// plain is memory of Go, with no rights of peers.
var plain = maker{
	allocate: func(n int) []byte { return make([]byte, n) },
	register: func(dev *engine.Device, pd *engine.PD, b []byte) (*engine.MR, error) {
		return dev.RegMR(pd, b, mem.LocalWrite)
	},
}

// newLaid draws memory for n bytes: plain, a list, blocks that take turns, or a list of pieces of
// those. It is known to all devices of the endpoint.
func newLaid(
	t testing.TB, rng *rand.Rand, how maker, e *msg.Endpoint, devs []*engine.Device, n int,
) *laid {
	t.Helper()
	l, kind, skip := &laid{}, rng.IntN(4), rng.IntN(50)
	layout, list := l.draw(rng, kind, n+skip)
	l.base = how.allocate(len(l.base))
	var of []*engine.MR
	for _, dev := range devs {
		pd := dev.AllocPD()
		mr, err := how.register(dev, pd, l.base)
		must(t, err)
		l.pds, l.mrs = append(l.pds, pd), append([]*engine.MR{mr}, l.mrs...)
		for _, next := range []layOn{layout, list} {
			if next == nil {
				continue
			}
			under, err := next(mr)
			must(t, err)
			mr, err = dev.RegIndirect(pd, 1000)
			must(t, err)
			must(t, mr.ReregLayout(mem.ChangeTranslation|mem.ChangeAccess, nil, mem.LocalWrite,
				under))
			l.mrs = append([]*engine.MR{mr}, l.mrs...)
		}
		of = append(of, mr)
	}
	region, err := e.Region(of...)
	must(t, err)
	l.span, l.order = region.Span(uint64(skip), n), l.order[skip:skip+n]
	return l
}

// A layOn makes a layout of what is in a region.
type layOn func(*engine.MR) (*mem.Layout, error)

// draw draws a layout for n bytes at least, and a second one on top of it; nil for none. It sets
// what they should be, and base to as much memory as they want.
func (l *laid) draw(rng *rand.Rand, kind, n int) (layout, list layOn) {
	n++
	if kind < 2 {
		l.base = make([]byte, n)
		for i := range n {
			l.order = append(l.order, i)
		}
	} else {
		layout = l.drawBlocks(rng, n)
	}
	if kind == 1 || kind == 3 {
		list = l.drawList(rng)
	}
	return layout, list
}

// drawBlocks has up to three blocks take turns.
func (l *laid) drawBlocks(rng *rand.Rand, n int) layOn {
	type block struct{ at, bytes, stride int }
	var blocks []block
	sum := 0
	for range 1 + rng.IntN(3) {
		b := block{bytes: 1 + rng.IntN(1+n/10)}
		b.stride = b.bytes + rng.IntN(1+b.bytes)
		blocks, sum = append(blocks, b), sum+b.bytes
	}
	turns, end := (n+sum-1)/sum, 0
	for i := range blocks {
		blocks[i].at = end
		end += turns * blocks[i].stride
	}
	l.base = make([]byte, end)
	for turn := range turns {
		for _, b := range blocks {
			for i := range b.bytes {
				l.order = append(l.order, b.at+turn*b.stride+i)
			}
		}
	}
	return func(mr *engine.MR) (*mem.Layout, error) {
		var of []mem.Block
		for _, b := range blocks {
			of = append(of, mr.Block(uint64(b.at), uint64(b.bytes), uint64(b.stride)))
		}
		return mem.NewInterleaved([]uint64{uint64(turns)}, of)
	}
}

// drawList cuts what there is up and shuffles the pieces.
func (l *laid) drawList(rng *rand.Rand) layOn {
	type piece struct{ at, n int }
	var pieces []piece
	for at := 0; at < len(l.order); {
		n := min(1+rng.IntN(1+len(l.order)/3), len(l.order)-at)
		pieces, at = append(pieces, piece{at, n}), at+n
	}
	rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	under := l.order
	l.order = nil
	for _, p := range pieces {
		l.order = append(l.order, under[p.at:p.at+p.n]...)
	}
	return func(mr *engine.MR) (*mem.Layout, error) {
		var of []mem.Piece
		for _, p := range pieces {
			of = append(of, mr.Piece(uint64(p.at), uint64(p.n)))
		}
		return mem.NewList(of)
	}
}

// packed is what the layout should read if all of the memory were so.
func (l *laid) packed(base []byte) []byte {
	b := make([]byte, len(l.order))
	for i, at := range l.order {
		b[i] = base[at]
	}
	return b
}

// set sets all of the memory, also what is not in the layout, drops some of it, and returns what it
// is then.
func (l *laid) set(how maker, to []byte) []byte {
	copy(l.base, to)
	if how.drop != nil {
		from, end := how.drop(l.base)
		clear(to[from:end])
	}
	return to
}

// put is what a message should write to memory that is like that.
func (l *laid) put(base, data []byte) []byte {
	for i, b := range data {
		base[l.order[i]] = b
	}
	return base
}

// end deregisters all, which nothing uses any more.
func (l *laid) end(t testing.TB) {
	t.Helper()
	for _, mr := range l.mrs {
		must(t, mr.Deregister())
	}
	for _, pd := range l.pds {
		must(t, pd.Close())
	}
}

// An exchange sends a message from one end to the other, each of which may be slices or laid.
type exchange struct {
	endpoint *msg.Endpoint // of the receiver
	from, to *msg.Conn
}

// pass sends a message of laid memory, or of data, and wants it in laid memory, or in buf.
func (x *exchange) pass(ctx context.Context, s *msg.Send, r *msg.Receive) error {
	r.From = x.to
	return errors.Join(x.endpoint.PostReceive(r), x.from.PostSend(s), r.Wait(ctx), s.Wait(ctx))
}

// regionSizes are lengths of messages by protocols.
var regionSizes = []int{0, 1, 60, 1024, 1025, 5000, 60_000, 300_000}

// TestRegions: messages of random layouts to others are what they would be packed, by each
// protocol, and nothing beside the layout is written; also into a receive that is shorter.
func TestRegions(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	ca, cb := connect(t, hosts)
	w := newWires(t, 2, msg.Options{})
	w.up(t, 2)
	rng, ctx := rand.New(rand.NewPCG(5, 6)), within(t)
	for round := range 240 {
		x := exchange{hosts[1].Endpoint, ca, cb}
		a, devs := hosts[0].Endpoint, [2][]*engine.Device{{hosts[0].dev}, {hosts[1].dev}}
		if round%2 == 1 {
			x, a, devs = exchange{w.endpoints[1], w.ca, w.cb}, w.endpoints[0], w.devices
		}
		by, size := rmsg.Protocol(round/2%6), regionSizes[rng.IntN(len(regionSizes))]
		from := newLaid(t, rng, plain, a, devs[0], size)
		to := newLaid(t, rng, plain, x.endpoint, devs[1], max(size/(1+round%5/4), 1))
		passLaid(t, ctx, &x, rng, plain, from, to, by)
		from.end(t)
		to.end(t)
	}
}

// passLaid passes a message from laid memory to other, and judges that.
func passLaid(
	t *testing.T, ctx context.Context, x *exchange, rng *rand.Rand, how maker, from, to *laid,
	by rmsg.Protocol,
) {
	t.Helper()
	content := make([]byte, len(from.base))
	for i := range content {
		content[i] = byte(rng.Uint32())
	}
	data := from.packed(from.set(how, content))
	room := min(len(data), to.span.Length)
	want := to.put(to.set(how, bytes.Repeat([]byte{0xee}, len(to.base))), data[:room])
	s := &msg.Send{Memory: from.span, Protocol: by}
	r := &msg.Receive{Memory: to.span}
	err := x.pass(ctx, s, r)
	if room < len(data) && errors.Is(err, msg.ErrTruncated) {
		err = nil
	}
	if err != nil || r.Length != room || r.Whole != len(data) || !bytes.Equal(to.base, want) {
		t.Fatalf("%d bytes by %v: %v, %d of %d, equal %v", len(data), s.Choice, err, r.Length,
			r.Whole, bytes.Equal(to.base, want))
	}
	if by != rmsg.Auto && len(data) > 200_000 && s.Choice.Protocol != by &&
		by != rmsg.Eager && by != rmsg.Provisioned {
		t.Errorf("%d bytes by %v, not %v", len(data), s.Choice, by)
	}
}

// TestRegionsAreExposed: what is sent and received by rendezvous is copied by nobody, and no memory
// is registered for it.
func TestRegionsAreExposed(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	ca, cb := connect(t, hosts)
	x := exchange{hosts[1].Endpoint, ca, cb}
	rng, ctx := rand.New(rand.NewPCG(7, 8)), within(t)
	const size = 300_000
	from := newLaid(t, rng, plain, hosts[0].Endpoint, []*engine.Device{hosts[0].dev}, size)
	to := newLaid(t, rng, plain, hosts[1].Endpoint, []*engine.Device{hosts[1].dev}, size)
	for _, by := range []rmsg.Protocol{rmsg.Get, rmsg.Put} {
		passLaid(t, ctx, &x, rng, plain, from, to, by)
	}
	for i, h := range hosts {
		n := h.Counters()
		if n[rmsg.BytesCopiedOut]+n[rmsg.BytesCopiedIn]+n[rmsg.NotRegistered] != 0 ||
			n[rmsg.BytesRead]+n[rmsg.BytesWritten] != size {
			t.Errorf("end %d: copied %d and %d bytes, %d without a key", i, n[rmsg.BytesCopiedOut],
				n[rmsg.BytesCopiedIn], n[rmsg.NotRegistered])
		}
	}
	from.end(t)
	to.end(t)
}

// TestRegionUnderWay: what a message is in can be neither changed nor deregistered until the
// message is complete, whatever becomes of it; then it can.
func TestRegionUnderWay(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	ca, cb := connect(t, hosts)
	dev, ctx := hosts[0].dev, within(t)
	pd := dev.AllocPD()
	base, err := dev.RegMR(pd, make([]byte, 600_000), mem.LocalWrite)
	must(t, err)
	laid, err := dev.RegIndirect(pd, 10)
	must(t, err)
	lay := func() error {
		return laid.ReregSG(mem.ChangeTranslation|mem.ChangeAccess, nil, mem.LocalWrite,
			[]mem.Piece{base.Piece(300_000, 200_000), base.Piece(0, 200_000)})
	}
	must(t, lay())
	region, err := hosts[0].Region(laid)
	must(t, err)
	kept := func(want bool) {
		t.Helper()
		if err := lay(); errors.Is(err, engine.ErrBusy) != want || !want && err != nil {
			t.Errorf("a new layout: %v", err)
		}
		if err := base.Deregister(); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("the memory of the layout is deregistered: %v", err)
		}
		if want && !errors.Is(laid.Deregister(), engine.ErrBusy) {
			t.Error("it is deregistered")
		}
	}
	s := &msg.Send{Memory: region.Span(10, 350_000)}
	must(t, ca.PostSend(s))
	kept(true)
	got := make([]byte, 350_000)
	_, err = cb.Receive(ctx, got)
	must(t, errors.Join(err, s.Wait(ctx)))
	kept(false)
	must(t, ca.PostSend(s))
	kept(true)
	s.Cancel()
	if err := s.Wait(ctx); !errors.Is(err, msg.ErrCancelled) {
		t.Errorf("taken back: %v", err)
	}
	kept(false)
	r := &msg.Receive{Memory: region.Span(0, 10)}
	must(t, hosts[0].PostReceive(r))
	kept(true)
	ca.Abort()
	r.Cancel()
	must(t, errors.Join(laid.Deregister(), base.Deregister(), pd.Close()))
}

// TestRegionRefuses: what cannot be is refused by name when it is posted, and leaves nothing held.
func TestRegionRefuses(t *testing.T) {
	_, hosts := newNetwork(t, msg.Options{})
	ca, _ := connect(t, hosts)
	dev := hosts[0].dev
	pd := dev.AllocPD()
	mr, err := dev.RegMR(pd, make([]byte, 100), 0)
	must(t, err)
	empty, err := dev.RegIndirect(pd, 1)
	must(t, err)
	for _, of := range [][]*engine.MR{{}, {nil}, {mr, mr}} {
		if _, err := hosts[0].Region(of...); !errors.Is(err, rmsg.ErrInvalid) {
			t.Errorf("%d regions: %v", len(of), err)
		}
	}
	if _, err := hosts[1].Region(mr); !errors.Is(err, rmsg.ErrInvalid) {
		t.Errorf("a region of another device: %v", err)
	}
	region, err := hosts[0].Region(mr)
	must(t, err)
	without, err := hosts[0].Region(empty)
	must(t, err)
	for _, c := range []struct {
		span msg.Span
		want error
		text string
	}{
		{region.Span(0, 101), mem.ErrPart, "out of range"},
		{region.Span(1<<63, 1), mem.ErrPart, "out of range"},
		{region.Span(0, -1), rmsg.ErrInvalid, "-1 bytes"},
		{without.Span(0, 1), mem.ErrPart, "invalid"},
	} {
		s := &msg.Send{Memory: c.span}
		for range 2 { // it is as it was
			err := ca.PostSend(s)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%+v: %v", c.span, err)
			}
		}
	}
	r := &msg.Receive{Memory: region.Span(0, 100)}
	if err := hosts[0].PostReceive(r); !errors.Is(err, mem.ErrPart) {
		t.Errorf("a receive into memory that is read alone: %v", err)
	}
	both := &msg.Send{Memory: region.Span(0, 100), Buffers: [][]byte{{1}}}
	if err := ca.PostSend(both); !errors.Is(err, rmsg.ErrInvalid) {
		t.Errorf("a message in two places: %v", err)
	}
	must(t, errors.Join(mr.Deregister(), empty.Deregister()))
	s := &msg.Send{Memory: region.Span(0, 100)}
	if err := ca.PostSend(s); !errors.Is(err, mem.ErrNotRegistered) {
		t.Errorf("a region that is gone: %v", err)
	}
	must(t, pd.Close())
}

// TestRegionOfALostDevice: a region of two devices of which one is gone, and what was registered
// there, too, is sent and received by the other.
func TestRegionOfALostDevice(t *testing.T) {
	w := newWires(t, 2, msg.Options{Linger: deadLinger})
	w.up(t, 2)
	rng, ctx := rand.New(rand.NewPCG(15, 16)), within(t)
	const size = 300_000
	from := newLaid(t, rng, plain, w.endpoints[0], w.devices[0], size)
	to := newLaid(t, rng, plain, w.endpoints[1], w.devices[1], size)
	x := exchange{w.endpoints[1], w.ca, w.cb}
	passLaid(t, ctx, &x, rng, plain, from, to, rmsg.Get)
	must(t, w.devices[1][0].Close())
	w.up(t, 1)
	var left []*engine.MR
	for _, mr := range to.mrs {
		if mr.Of(w.devices[1][0]) {
			must(t, mr.Deregister())
		} else {
			left = append(left, mr)
		}
	}
	to.mrs = left
	for _, by := range []rmsg.Protocol{rmsg.Get, rmsg.Put, rmsg.Fragments} {
		passLaid(t, ctx, &x, rng, plain, from, to, by)
	}
}

// TestProvideRefusesOtherRegions: who drives a machine answers for regions of its own.
func TestProvideRefusesOtherRegions(t *testing.T) {
	devices := bareDevices(t, 1)
	on := []msg.Domain{{Device: devices[0]}}
	for _, kind := range []rmsg.RequestKind{rmsg.Expose, rmsg.Load, rmsg.Store} {
		_, err := msg.Provide(on, &rmsg.Request{Kind: kind, Region: foreign{}, Size: 1})
		if !errors.Is(err, rmsg.ErrInvalid) {
			t.Errorf("kind %d: %v", kind, err)
		}
	}
}

// A foreign region is of nobody.
type foreign struct{ rmsg.Region }
