package peer

import (
	"context"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// Config says what an end is.
type Config struct {
	SendWR, RecvWR int        // depths of the work queues
	Access         mem.Access // what the other end may do: REMOTE_* flags
}

// An End is one end of a connection. Its completion queue holds whatever both
// work queues can produce.
type End struct {
	Dev *engine.Device
	PD  *engine.PD
	CQ  *engine.CQ
	QP  *engine.QP

	Local     engine.Endpoint // what the other end must be told; set by ChooseGID
	SGIDIndex int             // set by ChooseGID
}

// New makes an end with its QP in INIT: it can be posted receives to.
func New(dev *engine.Device, c Config) (_ *End, err error) {
	e := &End{Dev: dev, PD: dev.AllocPD()}
	defer func() {
		if err != nil {
			e.Close()
		}
	}()
	if e.CQ, err = dev.CreateCQ(c.SendWR + c.RecvWR); err != nil {
		return nil, err
	}
	e.QP, err = dev.CreateQP(e.PD, engine.QPInit{
		SendCQ: e.CQ, RecvCQ: e.CQ, MaxSendWR: c.SendWR, MaxRecvWR: c.RecvWR, SignalAll: true,
	})
	if err != nil {
		return nil, err
	}
	err = e.QP.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: c.Access},
		roce.AttrState|roce.AttrPKeyIndex|roce.AttrPort|roce.AttrAccess)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Connect brings the QP to RTS. ChooseGID must have been called.
func (e *End) Connect(ctx context.Context, remote engine.Endpoint, o engine.ConnectOptions) error {
	o.SGIDIndex = e.SGIDIndex
	return e.QP.Connect(ctx, e.Local, remote, o)
}

// Wait waits for completions and returns how many. A failed one is a roce.WorkError;
// the completions before it are then still in dst.
func (e *End) Wait(ctx context.Context, dst []roce.Completion) (int, error) {
	n, err := e.CQ.Wait(ctx, dst)
	if err != nil {
		return n, err
	}
	for i := range dst[:n] {
		if err := dst[i].Err(); err != nil {
			return i, err
		}
	}
	return n, nil
}

// Close destroys the QP, the completion queue and the protection domain: regions of the
// domain must be deregistered before. All that an error could say is that one of them
// is still in use, which the end of the device settles.
func (e *End) Close() {
	if e.QP != nil {
		e.QP.Close()
	}
	if e.CQ != nil {
		_ = e.CQ.Close()
	}
	_ = e.PD.Close()
}
