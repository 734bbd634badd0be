package cm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"xroce/roce"
	"xroce/roce/cm"
)

// largeLost is the private data of the DREQ of one of ours whose queue pair has found out that
// large packets alone are lost. The peer, which waits for what does not come, cannot.
var largeLost = []byte("xroce: large packets alone are lost\x00")

// Errors of this package. Errors of a call wrap one of them, one of the device, or that of the
// context. Those of Dial, Lookup and Listen in their forms are a *net.OpError, which says whom
// the call was for, and whose Timeout reports whether nobody answered in time.
var (
	// ErrClosed says that the manager, its device, the listener or the connection
	// was closed. It wraps net.ErrClosed.
	ErrClosed error = &failure{"cm: closed", net.ErrClosed}
	// ErrTimeout says that the peer did not answer, however often it was asked. It wraps
	// os.ErrDeadlineExceeded.
	ErrTimeout error = &failure{"cm: no answer from the peer", os.ErrDeadlineExceeded}
	// ErrNoAddress says that the device has no address of the peer's family.
	ErrNoAddress = errors.New("cm: the device has no address for this peer")
	// ErrHungUp says that the connection ended in order.
	ErrHungUp = errors.New("cm: connection ended")
	// ErrKeepalive says that the connection is over because the peer was silent and did not
	// answer when it was asked: see Setup.Keepalive. It wraps ErrTimeout.
	ErrKeepalive = fmt.Errorf("%w when it was asked by the keepalive", ErrTimeout)
	// ErrLargeLost says that the peer has ended the connection because large packets alone are lost
	// on the way: the path MTU is too large for it. It wraps roce.ErrLargeLost.
	ErrLargeLost = fmt.Errorf("cm: the peer ended the connection: %w on the way here, or back: "+
		"the path MTU is too large for something in between", roce.ErrLargeLost)
	// ErrAborted says that the connection is over because a call was given up while its work
	// request was under way: see Conn.Write.
	ErrAborted = errors.New("cm: connection ended with a call that was given up")
	// ErrExtensions says that there is no connection because an end must have extensions
	// that the other one does not offer: see Setup.Require. Both ends get it.
	ErrExtensions = errors.New("cm: the ends do not agree on extensions")
)

// A failure is an error with words of its own that wraps what callers test for.
type failure struct {
	text string
	is   error
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// Unwrap returns what callers test for.
func (f *failure) Unwrap() error { return f.is }

// A RejectedError says that the peer refused.
type RejectedError struct {
	Reason  cm.Reason     // of a connection
	Status  cm.SIDRStatus // of a lookup
	Private []byte        // what its application said, padded with zeros
}

// Error implements error.
func (e *RejectedError) Error() string {
	if e.Status != cm.SIDRSuccess {
		return fmt.Sprintf("cm: rejected: %s", e.Status)
	}
	return fmt.Sprintf("cm: rejected: %s", e.Reason)
}

// Is reports whether the reason is that of another error: ErrExtensions for a peer that must
// have extensions, syscall.ECONNREFUSED when nobody listens.
func (e *RejectedError) Is(target error) bool {
	switch target {
	case ErrExtensions:
		return e.Reason == cm.ReasonVendorOption
	case syscall.ECONNREFUSED:
		return e.Reason == cm.ReasonInvalidServiceID || e.Status == cm.SIDRUnsupported
	}
	return false
}

// network is what errors and addresses call the network of rdma_cm, as Go calls others "tcp".
const network = "rdma"

// An address is one with a port, or a service ID where there is none, as net.OpError has it.
type address string

// Network implements net.Addr.
func (address) Network() string { return network }

// String implements net.Addr.
func (a address) String() string { return string(a) }

// addressOf is that of a service at a host.
func addressOf(host netip.Addr, service cm.ServiceID) address {
	if service.IP() {
		return address(netip.AddrPortFrom(host, service.Port()).String())
	}
	return address(fmt.Sprintf("%s service %s", host, service))
}

// opError says of an error whom a call was for; nil stays nil.
func opError(op string, to address, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		err = late{err}
	}
	return &net.OpError{Op: op, Net: network, Addr: to, Err: err}
}

// inUse is an error that says what the address of another listener does in Go.
type inUse struct{ error }

// Unwrap returns the error.
func (u inUse) Unwrap() error { return u.error }

// Is reports whether another error says that an address is in use.
func (inUse) Is(target error) bool { return target == syscall.EADDRINUSE }

// late is an error that net.OpError takes for one of time.
type late struct{ error }

// Unwrap returns the error.
func (l late) Unwrap() error { return l.error }

// Timeout reports that it is one of time.
func (late) Timeout() bool { return true }
