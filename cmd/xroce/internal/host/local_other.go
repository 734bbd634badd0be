//go:build !linux

package host

import (
	"errors"
	"fmt"
	"runtime"

	"xroce/bpf"
	"xroce/engine/nic"
	"xroce/xsk"
)

// Local is the machine that the program runs on. It is not Linux, so it can tell
// nothing that a device needs: every method fails with errors.ErrUnsupported.
type Local struct{}

var _ Machine = Local{}

// errOther is what everything fails with.
var errOther = fmt.Errorf("AF_XDP on %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Kernel implements Machine.
func (Local) Kernel() (string, error) { return "", errOther }

// BPF implements Machine.
func (Local) BPF() (bpf.Support, error) { return bpf.Support{}, errOther }

// Probe implements Machine.
func (Local) Probe(int, int) (xsk.Support, error) { return xsk.Support{}, errOther }

// Interfaces implements Machine.
func (Local) Interfaces() ([]Interface, error) { return nil, errOther }

// Card implements Machine.
func (Local) Card(iface string) (nic.Card, error) { return nic.Read(iface) }

// User implements Machine.
func (Local) User() (User, error) { return User{}, errOther }
