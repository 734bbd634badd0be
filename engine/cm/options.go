package cm

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// Options say how to open a manager. The zero value is a good choice.
type Options struct {
	// Machine says how long the manager waits for what, how often it asks and how
	// much it holds. Its CAGUID and MTU are those of the device, and so is an
	// AckDelay of 0.
	Machine cm.Config
	// Clock is nil for the device's.
	Clock engine.Clock
	// Rand is the source of communication IDs and PSNs; nil for crypto/rand.
	Rand roce.Rand
	// Receives is how many MADs may arrive at once, default 2048.
	Receives int
	// Linger is how long Close waits at most until peers have confirmed that their
	// connections are over, default 5 s: they are asked twice with the other
	// defaults. Below 0 it does not wait.
	Linger time.Duration
}

const defaultLinger = 5 * time.Second

// defaultReceives is a flood of 20,000 requests a second for as long as the goroutine of
// the services may have to wait for a processor, 0.1 s: what peers ask meanwhile is not
// lost among them, which would cost each some seconds.
const defaultReceives = 2048

// Implementation constants: the defaults of Setup, those of engine.ConnectOptions.
const (
	defaultRetryCount  = 7
	defaultRNRRetry    = 7
	defaultMinRNRTimer = 12
	defaultRdAtomic    = 16
)

// A Setup says what our end of a connection is.
type Setup struct {
	// QP is a queue pair in RESET or INIT to connect, which stays the caller's. When it
	// is nil the manager makes one, of PD, Init and Access, and gives it back after
	// Conn.Close. Its type is RC, of Dial also XRC_SEND, and of a request to ListenXRC
	// XRC_RECV; of DialService and of a request to ListenUC also UC.
	//
	// An RC queue pair for which Init has no completion queues gets those of the manager,
	// and Conn.Write, Read, FetchAdd, CompareSwap, Send and Receive are its calls. The
	// application posts nothing to it then.
	QP     *engine.QP
	PD     *engine.PD
	Init   engine.QPInit
	Access mem.Access // what the peer may do, of a QP that is in RESET

	// Prepare is called with the QP in INIT, to post receives before the peer can
	// send. It may be nil. An error ends the attempt.
	Prepare func(*engine.QP) error

	// Require are those of the extensions of the queue pair (engine.QPInit.Extensions)
	// without which there is to be no connection: the error is ErrExtensions then. Others
	// are used if the peer has them, too, which Conn.Extensions tells; a peer that is not
	// one of ours has none.
	Require roce.Extensions

	// PathBytes has the payload of a full packet, given the private data of the peer, where both
	// ends come to the same; 0 is the path MTU. Without it both ends have that. See
	// roce.Attr.PathBytes. It is of queue pairs of type RC.
	PathBytes func(private []byte) int

	// Private is private data for the peer, at most 56 bytes in Dial, 92 to a service ID
	// that is none of rdma_cm, 196 in Accept. It arrives padded with zeros. Of XRC it tells
	// which SRQ to send to.
	Private []byte

	ResponderRes   uint8 // READs and atomics of the peer at once, default 16
	InitiatorDepth uint8 // READs and atomics of ours at once, default 16
	RetryCount     uint8 // of Dial, for both ends; default 7
	RNRRetry       uint8 // of the peer, 7 is for ever; default 7
	MinRNRTimer    uint8 // RNR timer code of ours, default 12: 0.64 ms
	Exact          bool  // take zeros as they are

	// Keepalive is how long nothing may be heard of the peer before it is asked whether it is
	// there; 0, the default, is never to ask. When it does not answer, nor as many
	// repetitions as the retry count says, each for the local ACK timeout or 4.3 s, whichever is
	// shorter, the connection ends with ErrKeepalive. So the peer, who has a part in both
	// numbers, makes it 34 s at most. Any peer answers, also one that has no keepalive: see
	// roce.Attr.Keepalive. It is of queue pairs of type RC, in whole milliseconds.
	Keepalive time.Duration

	// Of Dial:
	LocalAddr netip.Addr // ours, the zero Addr for what the machine's routes say
	TClass    uint8      // traffic class: DSCP and ECN
	SL        uint8      // service level, 0 to 7: the priority of VLAN tags, if there are any
	// PKeyIndex is the partition that the queue pair is put into and that the peer is asked for,
	// by the index of its P_Key in the table of the device. Who accepts is in the partition
	// that was asked for, if his device is.
	PKeyIndex  uint16
	PathMTU    wire.MTU // default: the device's active MTU
	AckTimeout uint8    // local ACK timeout code, 0 is of the packet life time: 17, 0.5 s

	calls *calls // of a connection without completion queues of the application
}

func (s *Setup) setDefaults() {
	if s.Exact {
		return
	}
	for _, f := range []struct {
		field *uint8
		value uint8
	}{
		{&s.ResponderRes, defaultRdAtomic},
		{&s.InitiatorDepth, defaultRdAtomic},
		{&s.RetryCount, defaultRetryCount},
		{&s.RNRRetry, defaultRNRRetry},
		{&s.MinRNRTimer, defaultMinRNRTimer},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
}

// qpType is that of the QP that there is, or is to be made.
func (s *Setup) qpType() roce.QPType {
	switch {
	case s.QP != nil:
		return s.QP.Type()
	case s.Init.Type == 0:
		return roce.TypeRC
	}
	return s.Init.Type
}

// ready makes the QP, if need be, and brings it to INIT. It is an error that the context
// has ended by then: the peer need not see an attempt that cannot succeed.
func (s *Setup) ready(
	ctx context.Context, m *Manager, types ...roce.QPType,
) (*engine.QP, error) {
	qp, is := s.QP, s.qpType()
	if !slices.Contains(types, is) {
		wanted := make([]string, len(types))
		for i, t := range types {
			wanted[i] = t.String()
		}
		return nil, fmt.Errorf("%w: a connection of %s, the QP is of type %s", roce.ErrInvalid,
			strings.Join(wanted, " or "), is)
	}
	var err error
	if ms := s.Keepalive.Milliseconds(); s.Keepalive != 0 &&
		(ms < 1 || ms > math.MaxUint32 || is != roce.TypeRC) {
		return nil, fmt.Errorf("%w: a keepalive of %s on a QP of type %s", roce.ErrInvalid,
			s.Keepalive, is)
	}
	if qp == nil && s.PD == nil {
		return nil, fmt.Errorf("%w: a setup without a protection domain", roce.ErrInvalid)
	}
	if qp == nil {
		if qp, err = s.create(m, is); err != nil {
			return nil, err
		}
	}
	if missing := s.Require &^ qp.Extensions(); missing != 0 {
		err = fmt.Errorf("%w: extensions %s are required, and not offered", roce.ErrInvalid,
			missing)
	}
	if err == nil {
		err = s.prepare(qp)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.discard(qp)
	}
	return qp, err
}

// create makes the QP.
func (s *Setup) create(m *Manager, is roce.QPType) (qp *engine.QP, err error) {
	if is == roce.TypeRC && s.Init.SendCQ == nil && s.Init.RecvCQ == nil && s.Init.SRQ == nil {
		if s.calls, err = m.newCalls(s.PD, &s.Init); err != nil {
			return nil, err
		}
	}
	if qp, err = m.dev.CreateQP(s.PD, s.Init); err != nil && s.calls != nil {
		s.calls.end()
	}
	return qp, err
}

// discard gives a QP back that was not connected, if the manager made it.
func (s *Setup) discard(qp *engine.QP) {
	if s.QP != nil {
		return
	}
	_ = qp.Close() // never fails
	if s.calls != nil {
		s.calls.end()
	}
}

// connect brings a queue pair to RTS with the attributes of a peer, who has sent private data.
func (s *Setup) connect(
	qp *engine.QP, p *cm.QPParams, path wire.Path, private []byte,
) error {
	a, mask := p.RTR(qp.Type(), path)
	if s.PathBytes != nil && qp.Type() == roce.TypeRC {
		a.PathBytes = uint16(min(s.PathBytes(private), math.MaxUint16)) // which is refused
		mask |= roce.AttrPathBytes
	}
	if err := qp.Modify(a, mask); err != nil {
		return err
	}
	return qp.Modify(p.RTS(qp.Type()))
}

func (s *Setup) prepare(qp *engine.QP) error {
	if qp.State() == roce.StateReset {
		if err := qp.Init(s.Access); err != nil {
			return err
		}
	}
	if s.Prepare != nil {
		return s.Prepare(qp)
	}
	return nil
}

// agrees is nil when what is used has what is required.
func (s *Setup) agrees(used roce.Extensions) error {
	if missing := s.Require &^ used; missing != 0 {
		return fmt.Errorf("%w: %s must be used, and the peer does not offer that",
			ErrExtensions, missing)
	}
	return nil
}
