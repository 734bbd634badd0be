package msg

import (
	"errors"
	"io"
)

// errCount says that a reader or a writer of others told a number that cannot be.
var errCount = errors.New("msg: invalid count of a reader or writer")

// noProgress is how often in a row a reader may return nothing.
const noProgress = 100

// ReadFrom implements io.ReaderFrom: it sends what it reads from r until io.EOF, which is read
// into the memory that goes to the peer. Other writers wait meanwhile. When r is slow, that
// memory, a slot, is its own.
func (s *Stream) ReadFrom(r io.Reader) (total int64, err error) {
	if err := s.out.take(s); err != nil {
		return 0, s.opError("readfrom", err)
	}
	defer s.out.give()
	want := 1 // whatever is there; when that gets full, more
	for empty := 0; ; {
		b, err := s.reserve(want, true)
		if err != nil {
			return total, s.opError("readfrom", err)
		}
		n, readErr, err := s.fill(r, b)
		if err != nil {
			return total, s.opError("readfrom", err)
		}
		total += int64(n)
		if want = n; n == len(b) {
			want++
		}
		if empty++; n > 0 {
			empty = 0
		}
		switch {
		case readErr == io.EOF:
			return total, nil
		case readErr != nil:
			return total, readErr
		case empty == noProgress:
			return total, io.ErrNoProgress
		}
	}
}

// fill reads into memory of the stream, and sends it.
func (s *Stream) fill(r io.Reader, b []byte) (n int, readErr, err error) {
	defer func() { _, err = s.commit(n, 0) }() // also when r panics
	m, readErr := r.Read(b)
	if m < 0 || m > len(b) {
		return 0, errCount, nil
	}
	return m, readErr, nil
}

// WriteTo implements io.WriterTo: it gives w what the peer sends, until io.EOF, in the memory
// where it arrived. Other readers wait meanwhile.
func (s *Stream) WriteTo(w io.Writer) (total int64, err error) {
	if err := s.in.take(s); err != nil {
		return 0, s.opError("writeto", err)
	}
	defer s.in.give()
	for {
		b, err := s.next()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, s.opError("writeto", err)
		}
		n, err := s.drain(w, b)
		total += int64(n)
		switch {
		case err != nil:
			return total, err
		case n < len(b):
			return total, io.ErrShortWrite
		}
	}
}

// drain writes memory of the stream to w. What w did not take stays.
func (s *Stream) drain(w io.Writer, b []byte) (n int, err error) {
	defer func() { s.consume(n, false) }() // also when w panics
	m, err := w.Write(b)
	if m < 0 || m > len(b) {
		return 0, errCount
	}
	return m, err
}
