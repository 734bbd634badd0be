//go:build !linux

package vethpair

import (
	"errors"
	"fmt"
)

// errOther is what everything fails with: only Linux has network namespaces.
var errOther = fmt.Errorf("vethpair: network namespaces: %w", errors.ErrUnsupported)

// New fails with errors.ErrUnsupported.
func New(Options) (*Pair, error) { return nil, errOther }

// AddWire fails with errors.ErrUnsupported.
func (p *Pair) AddWire(Options) (ends [2]End, err error) { return ends, errOther }

// Do fails with errors.ErrUnsupported.
func (p *Pair) Do(Side, func() error) error { return errOther }

// Close does nothing.
func (p *Pair) Close() error { return nil }

// Lost fails with errors.ErrUnsupported.
func (p *Pair) Lost() (uint64, error) { return 0, errOther }

// A lossCount counts nothing.
type lossCount struct{}

// Sweep fails with errors.ErrUnsupported.
func Sweep() ([]string, error) { return nil, errOther }

// Remove says that it needs Linux.
func Remove(string) error { return errOther }
