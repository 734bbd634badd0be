package tunnel

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"xroce/encap"
	"xroce/encap/bridge"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Bounds of what is received at once.
const (
	udReceives   = 1024 // datagrams, of all peers
	connReceives = 64   // messages, of one connection
	receiveHead  = 16   // before a message, so that there is room for the kernel's words
)

// A receiver takes what comes from peers, all on one goroutine.
type receiver struct {
	t     *Tunnel
	cq    *engine.CQ
	qp    *engine.QP // UD
	mr    *engine.MR // of its receives
	size  int        // of one
	parts *encap.Reassembler

	class  uint8 // traffic class of the headers of the packet, 0 where it says nothing
	packet encap.Packet
	whole  []byte // a frame that was put together, behind room for the kernel's words
	wcs    [64]roce.Completion

	native *nativePort // nil but over that
	group  *engine.QP  // in the group, nil for none; its receives are behind those of qp

	mu      sync.Mutex
	conns   map[uint32]*incoming // by number of the queue pair
	entries int                  // of cq, that those may need
	macs    map[[6]byte]*peer    // of native packets
}

func (t *Tunnel) newReceiver() (_ *receiver, err error) {
	r := &receiver{t: t, conns: map[uint32]*incoming{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	depth := udReceives
	if t.group != nil {
		depth *= 2
	}
	if t.config.Over.connected() {
		depth = connReceives // more with each connection
	}
	if r.cq, err = t.dev.CreateCQ(depth); err != nil {
		return nil, err
	}
	if t.config.Format.Spec().Segmented > 0 {
		r.parts, err = encap.NewReassembler(encap.ReassemblerConfig{Lifetime: t.config.life})
		if err != nil {
			return nil, err
		}
	}
	spec := t.config.Format.Spec()
	r.whole = make([]byte, inner.VNetLen+max(spec.Segmented, spec.Whole))
	switch t.config.Over {
	case OverUD:
		return r, r.startDatagrams()
	case OverNative:
		if err := r.openNative(); err != nil {
			return nil, err
		}
		// A queue pair is what peers ask for; this one takes nothing.
		return r, r.startQP(1)
	}
	return r, nil
}

// startDatagrams makes the queue pair that datagrams come to. Its Q_Key is told to peers alone. Its
// receives have room for the largest path MTU: that of the interface may be raised.
func (r *receiver) startDatagrams() (err error) {
	t := r.t
	r.size = align(wire.GRHLen + wire.MTU4096.Bytes())
	receives := udReceives
	if t.group != nil {
		receives *= 2
	}
	r.mr, err = t.dev.RegMR(t.pd, make([]byte, receives*r.size), mem.LocalWrite)
	if err != nil {
		return err
	}
	if err := r.startQP(udReceives); err != nil {
		return err
	}
	for i := range uint64(udReceives) {
		if err := r.post(i); err != nil {
			return err
		}
	}
	if t.group != nil {
		return r.startGroup(t.group)
	}
	return nil
}

// startQP makes a queue pair for so many receives, with a Q_Key of its own.
func (r *receiver) startQP(receives int) (err error) {
	t := r.t
	r.qp, err = t.dev.CreateQP(t.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: r.cq, RecvCQ: r.cq, MaxSendWR: 1, MaxRecvWR: receives,
		MaxInlineRecv: engine.NoInlineRecv, PKeyIndex: t.config.PKeyIndex,
	})
	if err != nil {
		return err
	}
	var key [4]byte
	rand.Read(key[:])                                    // never fails
	qkey := binary.BigEndian.Uint32(key[:]) &^ (1 << 31) // one with that bit is privileged
	return r.qp.Start(qkey)
}

// post posts a receive of a datagram.
func (r *receiver) post(i uint64) error {
	sges := [1]roce.SGE{r.mr.SGE(int(i)*r.size, r.size)}
	qp := r.qp
	if i >= udReceives {
		qp = r.group
	}
	return qp.PostRecv(&roce.RecvWR{WRID: i, SGList: sges[:]})
}

func (r *receiver) close() error {
	var errs []error
	if r.native != nil && r.native.NativePort != nil {
		errs = append(errs, r.native.Close())
	}
	for _, qp := range []*engine.QP{r.qp, r.group} {
		if qp != nil {
			_ = qp.Close() // never fails
		}
	}
	if r.mr != nil {
		errs = append(errs, r.mr.Deregister())
	}
	if r.cq != nil {
		errs = append(errs, r.cq.Close())
	}
	return errors.Join(errs...)
}

// run takes what comes until the context ends or the device fails.
func (r *receiver) run(ctx context.Context) error {
	if r.native != nil {
		return r.runNative(ctx)
	}
	for {
		n, err := r.cq.Wait(ctx, r.wcs[:])
		if err != nil {
			return fmt.Errorf("tunnel: completions of what came: %w", err)
		}
		if err := r.takeAll(n); err != nil {
			return err
		}
	}
}

// poll takes what came, and returns how many packets that were.
func (r *receiver) poll() (int, error) {
	if r.native != nil {
		return r.pollNative(), nil
	}
	n, err := r.cq.Take(r.wcs[:])
	if err != nil {
		return n, fmt.Errorf("tunnel: completions of what came: %w", err)
	}
	return n, r.takeAll(n)
}

// takeAll takes what is in the first completions.
func (r *receiver) takeAll(n int) error {
	for i := range r.wcs[:n] {
		if err := r.take(&r.wcs[i]); err != nil {
			return err
		}
	}
	if n > 0 {
		r.giveUpParts()
	}
	return nil
}

// giveUpParts gives up frames of which segments are missing for too long, and says how many have
// been given up, for this or another reason.
func (r *receiver) giveUpParts() {
	if r.parts == nil {
		return
	}
	r.parts.HandleDeadline(r.t.dev.Now())
	s := r.parts.Stats()
	r.t.counts.drops[dropIncomplete].Store(s.Expired + s.Stale + s.CrowdedOut)
}

// take takes what came in a receive, and posts it again.
func (r *receiver) take(wc *roce.Completion) error {
	if r.t.config.Over.connected() {
		r.takeMessage(wc)
		return nil
	}
	if wc.Status != roce.StatusSuccess {
		return fmt.Errorf("tunnel: a receive: %w", wc.Err())
	}
	b := r.mr.Bytes()[int(wc.WRID)*r.size:][:wc.ByteLen]
	path, err := wire.ParseReplyGRH(b)
	p := r.t.roster.Load().byAddr[path.Src.Addr()]
	switch {
	case err == nil && wc.WRID >= udReceives:
		p = r.fromGroup(&path, wc.SrcQP, p)
	case err != nil || p == nil:
		r.t.counts.drop(dropStranger)
		p = nil
	}
	if p != nil {
		source := uint64(p.port)<<32 | uint64(wc.SrcQP)
		r.class = path.TClass
		r.handle(p, nil, source, b, wire.GRHLen, 0)
	}
	return r.post(wc.WRID)
}

// handle takes a packet from a peer: b from at on, with enough before that for the words of the
// kernel once the headers are read; e is the key by which it must be sealed, nil when that is
// one of the peer's.
func (r *receiver) handle(
	p *peer, e *session, source uint64, b []byte, at int, hint inner.Hint,
) {
	t := r.t
	p.counts.rxPackets.Add(1)
	at, end, hint, ok := r.open(p, e, b, at, hint)
	if !ok {
		return
	}
	if reason := r.packet.Decode(t.config.Format, b[at:end]); reason != encap.OK {
		p.counts.refuse(reason)
		return
	}
	if t.config.Format == encap.VNIC && r.packet.Switch != t.config.Segment {
		p.counts.drop(dropSegment)
		return
	}
	if !r.packet.Segment.Whole() {
		frame, reason := r.parts.Add(t.dev.Now(), source, &r.packet)
		if reason != encap.OK {
			p.counts.refuse(reason)
		}
		if frame == nil {
			return
		}
		n := copy(r.whole[inner.VNetLen:], frame)
		r.forward(p, encap.Ethernet, r.whole[:inner.VNetLen+n], 0)
		return
	}
	at += t.config.Format.Spec().HeaderLen - inner.VNetLen
	r.forward(p, r.packet.Kind, b[at:][:inner.VNetLen+r.packet.Len()], hint)
}

// forward gives a datagram inside, if it is to go there: b has room for the kernel's words
// before it.
func (r *receiver) forward(p *peer, k encap.Kind, b []byte, hint inner.Hint) {
	t, datagram := r.t, b[inner.VNetLen:]
	v, ok := hint.VNet(k, datagram)
	switch {
	case !ok:
		p.counts.drop(dropHint)
		return
	case k == encap.Ethernet && t.table != nil:
		dst, src := bridge.MAC(datagram[:6]), bridge.MAC(datagram[6:12])
		t.bridge.Lock()
		// Who is forgotten meanwhile leaves nothing behind in the table.
		inside := !p.gone.Load() && t.table.FromPeer(t.dev.Now(), dst, src, p.port)
		t.bridge.Unlock()
		if !inside {
			p.counts.drop(dropBridge)
			return
		}
	case (k == encap.IPv4 || k == encap.IPv6) && t.routes != nil:
		if !t.isFrom(p, address(k, datagram, false)) {
			p.counts.drop(dropSource)
			return
		}
	default:
		p.counts.drop(dropKind)
		return
	}
	h := inner.Parse(k, datagram)
	if k == encap.Ethernet {
		t.suppression.hear(t.dev.Now(), &h, datagram, p.port)
	}
	if !h.Decapsulate(datagram, r.class) {
		p.counts.drop(dropMarked)
		return
	}
	h.ClampMSS(datagram, t.inside.MTU, v.Flags&inner.NeedsChecksum != 0)
	t.deliver(&p.counts, b, v)
}
