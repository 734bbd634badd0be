package engine

import (
	"errors"
	"fmt"
	"sync"

	"xroce/roce"
	"xroce/roce/mem"
)

// ErrPermission says that an object is of another protection domain (EPERM).
var ErrPermission = errors.New("engine: of another protection domain")

// An MW is a memory window (struct ibv_mw): a key that grants peers part of a region,
// with rights of its own, and can be taken away again without touching the region.
// Its methods are safe for concurrent use.
//
// A window of type 1 is bound by Bind, one of type 2 by a work request:
//
//	qp.PostSend(&roce.SendWR{Opcode: roce.OpBindMW, Bind: mem.Bind{
//		Window: mw.RKey(), NewKey: mem.NextKey(mw.RKey()), LKey: mr.LKey(),
//		Addr: mr.Addr(), Length: 4096, Access: mem.RemoteWrite,
//	}})
//
// and is free again after LOCAL_INV, after a SEND with invalidate from the peer of the
// queue pair that bound it, or after Dealloc. When that queue pair is closed no peer can
// use the window, until it is freed.
type MW struct {
	core   *mem.Window
	device *Device
	pd     *PD
	number uint32 // in the registry

	mu sync.Mutex
	// posted is the key of the last bind that was posted, of a window of type 1.
	posted uint32
}

// AllocMW makes a memory window, bound to nothing (ibv_alloc_mw). The error is
// mem.ErrWindow for what is no type, and roce.ErrInvalid when the domain is closed.
func (p *PD) AllocMW(t mem.WindowType) (*MW, error) {
	if err := p.retain(p.device); err != nil {
		return nil, err
	}
	w, err := p.device.keys.AllocWindow(&p.core, t)
	if err != nil {
		p.release()
		return nil, err
	}
	m := &MW{core: w, device: p.device, pd: p, posted: w.RKey()}
	p.device.registry.add(resourceMW, m, &m.number)
	return m, nil
}

// Windows2A reports whether type 2 windows of the device are of type 2A, and not 2B.
func (d *Device) Windows2A() bool { return d.keys.Windows2A() }

// Type returns the type.
func (w *MW) Type() mem.WindowType { return w.core.Type() }

// PD returns the protection domain.
func (w *MW) PD() *PD { return w.pd }

// Bound reports whether the window is bound to a region just now.
func (w *MW) Bound() bool { return w.core.Bound() }

// Addr returns the address by which the peer names the first byte, 0 when the window
// is not bound.
func (w *MW) Addr() uint64 { return w.core.Addr() }

// Len returns the length in bytes, 0 when the window is not bound.
func (w *MW) Len() uint64 { return w.core.Len() }

// RKey returns the key for the peer. That of a window of type 1 is the one of the last
// Bind that was posted, whether it was executed yet or not.
func (w *MW) RKey() uint32 {
	if w.Type() == mem.WindowType2 {
		return w.core.RKey()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.posted
}

// An MWBind is what a window of type 1 is bound to (struct ibv_mw_bind).
type MWBind struct {
	WRID  uint64
	Flags roce.SendFlags // roce.SendSignaled, roce.SendFence

	MR     *MR        // the region; nil with Length 0
	Addr   uint64     // of the first byte, as the region's work requests name it
	Length uint64     // in bytes; 0 unbinds
	Access mem.Access // REMOTE_* and FLUSH_*
}

// Bind posts a bind of a window of type 1 to a queue pair of its domain (ibv_bind_mw),
// and returns the key that the peer is to be given: the one before with the next
// variant. A window may be bound again while it is bound; the key before is dead when
// the bind is executed. What depends on keys is checked then, and the completion tells:
// StatusMWBindErr, after which the window is as it was. After a bind that did not
// succeed, or was flushed, Restore makes RKey that of the window again.
//
// With an error nothing happened: roce.ErrInvalid for a window of type 2, ZERO_BASED,
// an address or a length without a region, and what QP.PostSend refuses;
// ErrPermission for a queue pair or a region of another domain.
func (w *MW) Bind(q *QP, b MWBind) (rkey uint32, err error) {
	if err := w.checkBind(q, &b); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	next := mem.NextKey(w.posted)
	wr := roce.SendWR{
		WRID: b.WRID, Opcode: roce.OpBindMW, Flags: b.Flags,
		Bind: mem.Bind{
			Window: w.posted, NewKey: next, Addr: b.Addr, Length: b.Length, Access: b.Access,
		},
	}
	if b.MR != nil {
		wr.Bind.LKey = b.MR.LKey()
	}
	if err := q.PostSend(&wr); err != nil {
		return 0, err
	}
	w.posted = next
	return next, nil
}

// checkBind makes the checks that need no look at keys.
func (w *MW) checkBind(q *QP, b *MWBind) error {
	switch {
	case w.Type() != mem.WindowType1:
		return fmt.Errorf("%w: a window of type 2 is bound by a work request", roce.ErrInvalid)
	case b.Access&mem.ZeroBased != 0:
		return fmt.Errorf("%w: a window of type 1 with ZERO_BASED", roce.ErrInvalid)
	case b.MR == nil && (b.Addr != 0 || b.Length != 0):
		return fmt.Errorf("%w: %d bytes at %#x of no region", roce.ErrInvalid, b.Length, b.Addr)
	case q.control.refs.pd != w.pd:
		return fmt.Errorf("%w: the QP is not of the window's", ErrPermission)
	case b.MR != nil && b.MR.PD() != w.pd:
		return fmt.Errorf("%w: the region is not of the window's", ErrPermission)
	}
	return nil
}

// Restore makes RKey the key of the last Bind that was executed. It is for when the
// completion of a Bind was not one of success; none must be outstanding then.
func (w *MW) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.posted = w.core.RKey()
}

// Dealloc takes the window's key out of use for good, bound or not (ibv_dealloc_mw).
// When it returns, no packet uses the window any more. It is idempotent.
func (w *MW) Dealloc() {
	if w.device.keys.DeallocWindow(w.core) != nil {
		return // once was enough
	}
	w.device.registry.remove(resourceMW, w, w.number)
	w.pd.release()
	w.device.quiesce()
}

// Close is Dealloc, by the name of io.Closer. The error is always nil.
func (w *MW) Close() error {
	w.Dealloc()
	return nil
}
