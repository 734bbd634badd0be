package roce

import (
	"fmt"

	"xroce/roce/cc"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/recovery"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// Implementation constants of a QP.
const (
	// defaultWindow is how many PSNs may be unacknowledged: enough to keep a
	// link busy over the round trip of a burst, and small against the receive
	// ring of the peer, which has to hold all of it.
	defaultWindow = 256
	maxWindow     = 1 << 16
)

// QPConfig says what a new QP is.
type QPConfig struct {
	Type           QPType
	Domain         *mem.Domain
	SendCQ, RecvCQ *CQ   // may be the same
	SRQ            *SRQ  // receives come from here; MaxRecvWR is 0 then
	XRCD           *XRCD // of an XRC_RECV
	MaxSendWR      int   // send work requests, 1 to MaxWR
	MaxRecvWR      int   // receive work requests, 1 to MaxWR
	MaxSendSGE     int   // pieces of a send, 1 to MaxSGE
	MaxRecvSGE     int   // pieces of a receive, 1 to MaxSGE
	MaxInline      int   // bytes of inline data, 0 to MaxInline
	// MaxInlineRecv is how many bytes of a SEND received, of a READ response or of an
	// atomic one its completion may carry, 0 to MaxInlineRecv.
	MaxInlineRecv int
	SignalAll     bool         // every send makes a completion (sq_sig_all)
	Window        int          // PSNs in flight, 0 for the default
	MTU           wire.MTU     // of the port: what a datagram may carry, default 4096
	Counters      *counter.Set // of the queue that drives the QP
	Common        *Common      // with other QPs of the queue
	// ReorderWindow is how many requests that overtook a missing one an RC QP without
	// Extensions keeps before it says so, or for 100 us: for peers whose packets take several
	// paths and who know nothing of extensions. 0 says so at once, as the architecture has it.
	// It needs an early pool.
	ReorderWindow uint8
	// Congestion is what connected QPs of the device have for congestion control, with its
	// defaults and checked. It is not changed any more. Without it marks of switches mean
	// nothing, CNPs are dropped, and Attr.Congestion is refused.
	Congestion *cc.Config

	// OnEvent is told of asynchronous events with the progress lock held, and
	// must not block. It may be nil.
	OnEvent func(Event)
}

// A Common is what the QPs of a queue have in common. It is not changed once one has it.
type Common struct {
	Keys      *mem.Keys       // of the device
	EarlyPool *recovery.Pool  // where early packets wait; nil refuses Extensions
	PKeys     verbs.PKeyTable // of the port

	// rider is the acknowledge that may ride on the request that a QP is writing now, nil for
	// none; it is nil again when it did.
	rider *response
	// recent are keys that were used.
	recent mem.Recent
}

// ForgetKeys lets go of the memory of keys that were used: who deregistered it may free it then.
// It needs the progress lock.
func (c *Common) ForgetKeys() { c.recent.Forget() }

func (c *QPConfig) check() error {
	switch {
	case !c.Type.Known():
		return fmt.Errorf("%w: no QP %s", ErrInvalid, c.Type)
	case c.Domain == nil || c.Common == nil || c.Common.Keys == nil || c.Counters == nil:
		return fmt.Errorf("%w: a QP needs a protection domain, keys and counters", ErrInvalid)
	case c.Type.HasSend() && c.SendCQ == nil:
		return fmt.Errorf("%w: %s needs a send CQ", ErrInvalid, c.Type)
	case c.Type.HasRecv() && c.RecvCQ == nil:
		return fmt.Errorf("%w: %s needs a receive CQ", ErrInvalid, c.Type)
	case c.Window < 0 || c.Window > maxWindow:
		return fmt.Errorf("%w: window %d is not in 0..%d", ErrInvalid, c.Window, maxWindow)
	case c.MaxInline < 0 || c.MaxInline > MaxInline:
		return fmt.Errorf("%w: %d bytes inline are not in 0..%d", ErrInvalid, c.MaxInline,
			MaxInline)
	case c.MaxInlineRecv < 0 || c.MaxInlineRecv > MaxInlineRecv:
		return fmt.Errorf("%w: %d bytes of inline receive are not in 0..%d", ErrInvalid,
			c.MaxInlineRecv, MaxInlineRecv)
	case c.MTU > wire.MTU4096:
		return fmt.Errorf("%w: MTU code %d is not in 1..5", ErrInvalid, uint8(c.MTU))
	}
	if err := c.Common.PKeys.Check(); err != nil {
		return err
	}
	if c.ReorderWindow != 0 && (c.Common.EarlyPool == nil || c.Type != TypeRC) {
		return fmt.Errorf("%w: a reorder window is for RC with an early pool", ErrInvalid)
	}
	return c.checkShared()
}

// checkShared tests what a QP shares with others.
func (c *QPConfig) checkShared() error {
	switch {
	case (c.Type == TypeXRCRecv) != (c.XRCD != nil):
		return fmt.Errorf("%w: an XRC domain is for XRC_RECV alone, which needs one", ErrInvalid)
	case c.SRQ != nil && (c.Type.XRC() || c.Type == TypeRawPacket):
		return fmt.Errorf("%w: %s takes no SRQ", ErrInvalid, c.Type)
	case c.SRQ != nil && c.SRQ.XRC():
		return fmt.Errorf("%w: the SRQ is one for XRC", ErrInvalid)
	case c.SRQ != nil && c.MaxRecvWR != 0:
		return fmt.Errorf("%w: a QP on an SRQ has no receive queue", ErrInvalid)
	}
	return nil
}
