//go:build !linux

package engine

import "errors"

func mapArena(int) ([]byte, bool, error) {
	return nil, false, errors.ErrUnsupported
}

func unmapArena([]byte) error { return nil }
