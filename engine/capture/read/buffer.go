package read

import "io"

// A buffer holds what was read of a file and not taken yet. It is a bufio.Reader that is asked for
// a packet or two at a time, in which nothing is called while they are there.
type buffer struct {
	in  io.Reader
	b   []byte
	at  int // of the first byte that was not taken
	end int // of those that are there
	err error

	ahead *ahead // reads for it, nil when the buffer reads by itself
}

// portion is how many bytes are read at once where no packet is longer. More of them would not
// stay in the cache of a processor until they are looked at.
const portion = 256 << 10

// emptyReads is how often a reader may return nothing at once, which is no error of its own.
const emptyReads = 100

// newBuffer makes a buffer in which MaxBlock bytes can be seen at once.
func newBuffer(in io.Reader) *buffer {
	return &buffer{in: in, b: make([]byte, MaxBlock+portion)}
}

// buffered is how many bytes are there.
func (b *buffer) buffered() int { return b.end - b.at }

// peek returns the next n bytes without taking them, fewer only with an error. They are the
// caller's until the next call. n is at most MaxBlock.
func (b *buffer) peek(n int) ([]byte, error) {
	if b.end-b.at >= n {
		return b.b[b.at : b.at+n : b.at+n], nil
	}
	return b.fill(n)
}

// take passes over n bytes that were seen.
func (b *buffer) take(n int) { b.at += n }

// fill is peek for bytes that are not there.
func (b *buffer) fill(n int) ([]byte, error) {
	if b.ahead != nil {
		return b.fillAhead(n)
	}
	if b.at > 0 {
		b.end = copy(b.b, b.b[b.at:b.end])
		b.at = 0
	}
	for b.end < n && b.err == nil {
		room := b.b[b.end:min(len(b.b), max(b.end+portion, n))]
		var got int
		got, b.err = readSome(b.in, room)
		b.end += got
	}
	if b.end < n {
		return b.b[:b.end], b.err
	}
	return b.b[:n:n], nil
}

// Read implements io.Reader, for what unpacks a file.
func (b *buffer) Read(to []byte) (int, error) {
	have, err := b.peek(1)
	if len(have) == 0 {
		return 0, err
	}
	n := copy(to, b.b[b.at:b.end])
	b.take(n)
	return n, nil
}

// ReadByte implements io.ByteReader, so that gzip reads no more than there is to it.
func (b *buffer) ReadByte() (byte, error) {
	have, err := b.peek(1)
	if len(have) == 0 {
		return 0, err
	}
	b.take(1)
	return have[0], nil
}
