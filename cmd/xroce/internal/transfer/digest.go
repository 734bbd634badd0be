package transfer

import (
	"context"
	"hash"
	"io"
)

// digestOf counts the next bytes of a file in a digest, until the context ends.
func digestOf(ctx context.Context, from io.Reader, size int64, digest hash.Hash) error {
	buf := make([]byte, min(size, ChunkSize))
	for size > 0 {
		if err := context.Cause(ctx); err != nil {
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
