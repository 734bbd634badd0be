package transfer

import (
	"hash"
	"io"
)

// digestOf counts the next bytes of a file in a digest, until ended says why not to go on.
func digestOf(ended func() error, from io.Reader, size int64, digest hash.Hash) error {
	buf := make([]byte, min(size, ChunkSize))
	for size > 0 {
		if err := ended(); err != nil {
			return err
		}
		part := buf[:min(size, ChunkSize)]
		if _, err := io.ReadFull(from, part); err != nil {
			return err
		}
		digest.Write(part)
		size -= int64(len(part))
	}
	return nil
}
