package model

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapped is memory for an end. Slots of a thousand peers are gigabytes of which hardly any is
// touched: mapped they cost nothing, where the runtime would clear them all.
func (w *Wire) mapped(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("model: %d bytes of memory: %w", n, err)
	}
	w.maps = append(w.maps, b)
	return b, nil
}

// Close gives the memory of both ends back. Nothing may be sent any more.
func (w *Wire) Close() {
	for _, b := range w.maps {
		_ = unix.Munmap(b) // fails only for what is not mapped
	}
	w.maps = nil
}
