package transfer

// Chunks of the sender and the slots of the receiver.
const (
	ChunkSize = 1 << 20 // bytes of a chunk, but the last of a file
	Slots     = 8       // chunks that each end holds
)

// Bounds of what a sender lends its memory to: a receiver that holds more chunks than
// these gets nothing.
const (
	maxWindow = 16 << 20 // bytes of all chunks
	maxSlots  = 64
)

// MaxSize is the size of the largest file in bytes: the number of a chunk has 32 bits.
const MaxSize = ChunkSize << 32

// chunksOf is the number of chunks of a file, the last of which may be shorter.
func chunksOf(size int64, chunk int) int64 {
	n := size / int64(chunk)
	if size%int64(chunk) != 0 {
		n++
	}
	return n
}

// chunkLen is the length of chunk n of a file.
func chunkLen(size int64, chunk int, n int64) int {
	return int(min(int64(chunk), size-n*int64(chunk)))
}
