//go:build !linux

package bpf

import "fmt"

var errOther = fmt.Errorf("bpf: XDP needs Linux: %w", ErrNotSupported)

// A Program is an attached XDP program. There is none outside Linux.
type Program struct{ _ byte }

// Attach returns ErrNotSupported.
func Attach(int, Options) (*Program, error) { return nil, errOther }

// Probe returns ErrNotSupported.
func Probe() (Support, error) { return Support{}, errOther }

// Mode returns Auto.
func (*Program) Mode() Mode { return Auto }

// NativeErr returns ErrNotSupported.
func (*Program) NativeErr() error { return errOther }

// Queues returns 0.
func (*Program) Queues() int { return 0 }

// Own returns ErrNotSupported.
func (*Program) Own(Key) error { return errOther }

// Disown returns ErrNotSupported.
func (*Program) Disown(Key) error { return errOther }

// Taken reports false.
func (*Program) Taken(int) bool { return false }

// Register returns ErrNotSupported.
func (*Program) Register(int, int) error { return errOther }

// Unregister returns ErrNotSupported.
func (*Program) Unregister(int) error { return errOther }

// Attached returns ErrNotSupported.
func (*Program) Attached() (bool, error) { return false, errOther }

// Reattach returns ErrNotSupported.
func (*Program) Reattach() error { return errOther }

// Counters returns ErrNotSupported.
func (*Program) Counters() (Counters, error) { return Counters{}, errOther }

// Count returns ErrNotSupported.
func (*Program) Count(Reason) (Count, error) { return Count{}, errOther }

// Close does nothing.
func (*Program) Close() error { return nil }

// A Collector is an attached XDP program. There is none outside Linux.
type Collector struct{ _ byte }

// Collect returns ErrNotSupported.
func Collect(int, Filter, Options) (*Collector, error) { return nil, errOther }

// Mode returns Auto.
func (*Collector) Mode() Mode { return Auto }

// NativeErr returns ErrNotSupported.
func (*Collector) NativeErr() error { return errOther }

// Register returns ErrNotSupported.
func (*Collector) Register(int, int) error { return errOther }

// Close does nothing.
func (*Collector) Close() error { return nil }
