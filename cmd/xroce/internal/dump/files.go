package dump

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"xroce/engine/capture"
)

// Files says where packets are written and when the next file begins, as tcpdump does.
type Files struct {
	Name  string        // of the file; with Every it is a format of strftime(3)
	Size  int64         // -C: bytes after which the next one begins, 0 for none
	Every time.Duration // -G: how long one is, by the time of the packets, 0 for no limit
	Count int           // -W: how many there are; with Size the oldest is written over then
}

// A Writer is a Sink that writes pcapng to one file after another.
type Writer struct {
	files   Files
	iface   string
	snap    int
	out     *bufio.Writer
	file    io.Closer // nil for what is not ours
	made    int       // files
	turn    int       // number of the file in the ring
	written int64     // bytes of this file
	began   int64     // nanoseconds since 1970, of the first packet of this time (-G)
	total   capture.Statistics
	buffer  []byte
}

// NewWriter returns a Sink that writes to w, which its caller closes.
func NewWriter(w io.Writer, iface string, snap int) (*Writer, error) {
	s := &Writer{iface: iface, snap: snap, out: bufio.NewWriterSize(w, 1<<16)}
	s.buffer = capture.AppendHeader(s.buffer[:0], iface, snap)
	if err := s.put(); err != nil {
		return nil, err
	}
	return s, s.out.Flush() // so that a reader sees at once what this is
}

// NewFiles returns a Sink that writes files. The first one is made when there is a packet, or
// at the end, but where there will be but one, now.
func NewFiles(f Files, iface string, snap int) (*Writer, error) {
	s := &Writer{files: f, iface: iface, snap: snap}
	if f.Every == 0 {
		return s, s.begin(0)
	}
	return s, nil
}

// put writes the buffer.
func (s *Writer) put() error {
	n, err := s.out.Write(s.buffer)
	s.written += int64(n)
	return err
}

// Packet implements Sink.
func (s *Writer) Packet(p *capture.Packet) error {
	s.total.Received++
	s.total.At = p.At
	full := s.files.Size > 0 && s.written > s.files.Size
	late := s.files.Every > 0 && s.file != nil && p.At-s.began >= int64(s.files.Every)
	if late && s.files.Count > 0 && s.files.Size == 0 && s.made == s.files.Count {
		return ErrEnough
	}
	if late || s.began == 0 {
		s.began = p.At
	}
	if late && s.timed() {
		s.turn = 0 // numbers are those of files of one time
	}
	if s.out == nil || full || late {
		if err := s.begin(s.began); err != nil {
			return err
		}
	}
	s.buffer = capture.AppendPacket(s.buffer[:0], p, s.snap)
	return s.put()
}

// begin ends the file and begins the next, which is named after a time.
func (s *Writer) begin(at int64) error {
	if err := s.end(); err != nil {
		return err
	}
	file, err := os.Create(s.name(at))
	if err != nil {
		return err
	}
	s.made++
	if s.turn++; s.files.Count > 0 && s.turn == s.files.Count && s.files.Size > 0 {
		s.turn = 0
	}
	s.file, s.out, s.written = file, bufio.NewWriterSize(file, 1<<18), 0
	s.buffer = capture.AppendHeader(s.buffer[:0], s.iface, s.snap)
	return s.put()
}

// timed reports whether names have the time.
func (s *Writer) timed() bool {
	_, timed := strftime(s.files.Name, time.Time{})
	return s.files.Every > 0 && timed
}

// name is that of the next file.
func (s *Writer) name(at int64) string {
	name, timed := s.files.Name, false
	if s.files.Every > 0 {
		name, timed = strftime(name, time.Unix(0, at))
	}
	switch {
	case s.files.Size > 0 && s.files.Count > 1:
		return fmt.Sprintf("%s%0*d", name, len(fmt.Sprint(s.files.Count-1)), s.turn)
	case s.files.Size > 0 && s.turn > 0, s.files.Every > 0 && !timed && s.turn > 0:
		return fmt.Sprintf("%s%d", name, s.turn)
	}
	return name
}

// end closes the file, if there is one.
func (s *Writer) end() error {
	if s.out == nil {
		return nil
	}
	err := s.out.Flush()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	s.out, s.file = nil, nil
	return err
}

// Flush implements Sink.
func (s *Writer) Flush() error {
	if s.out == nil {
		return nil
	}
	return s.out.Flush()
}

// End implements Sink.
func (s *Writer) End(from capture.Statistics) error {
	if s.out == nil {
		if err := s.begin(time.Now().UnixNano()); err != nil { // no packet has come
			return err
		}
	}
	if from.Received == 0 { // the source has ended without a word
		from = s.total
		from.Accepted = from.Received
	}
	s.buffer = capture.AppendStatistics(s.buffer[:0], from)
	return errors.Join(s.put(), s.end())
}
