//go:build !linux

package traffic

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"xroce/bpf"
	"xroce/roce/gen"
	"xroce/xsk"
)

// errOther is what everything fails with: there is no AF_XDP.
var errOther = fmt.Errorf("AF_XDP on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// A SendPort is an interface to send from. There is none outside Linux.
type SendPort struct {
	Name  string
	Link  xsk.Link
	Links []xsk.Link
	Route Route

	wayOut
}

// OpenSender fails.
func OpenSender(context.Context, PortOptions, string) (*SendPort, error) { return nil, errOther }

// Confirm fails.
func (*SendPort) Confirm(context.Context, *Sender) (gen.Account, bool, error) {
	return gen.Account{}, false, errOther
}

// Attached returns Auto.
func (*SendPort) Attached() (bpf.Mode, error) { return bpf.Auto, nil }

// Close does nothing.
func (*SendPort) Close() error { return nil }

// A SinkPort is an interface that a sink collects from. There is none outside Linux.
type SinkPort struct {
	Name string
	Link xsk.Link
}

// OpenSink fails.
func OpenSink(PortOptions) (*SinkPort, error) { return nil, errOther }

// Attached returns Auto.
func (*SinkPort) Attached() (bpf.Mode, error) { return bpf.Auto, nil }

// Close does nothing.
func (*SinkPort) Close() error { return nil }
