//go:build !linux

package engine

import "errors"

// Open needs AF_XDP, which is Linux.
func Open(string, Options) (*Device, error) {
	return nil, errors.Join(errors.New("engine: AF_XDP needs Linux"), errors.ErrUnsupported)
}
