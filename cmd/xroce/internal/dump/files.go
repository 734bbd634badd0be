package dump

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"xroce/cmd/xroce/internal/userfile"
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
	files  Files
	iface  string
	snap   int
	out    *outlet   // nil before the first file, and after the last
	file   io.Closer // nil for what is not ours
	made   int       // files
	turn   int       // number of the file in the ring
	length int64     // bytes of this file, with those that wait
	began  int64     // nanoseconds since 1970, of the first packet of this time (-G)
	before uint64    // packets that were written to the files before
	total  capture.Statistics
	buffer []byte
}

// NewWriter returns a Sink that writes to w, which its caller closes.
func NewWriter(w io.Writer, iface string, snap int) (*Writer, error) {
	s := &Writer{iface: iface, snap: snap, out: newOutlet(w)}
	s.buffer = capture.AppendHeader(s.buffer[:0], iface, snap)
	if err := s.put(); err != nil {
		return nil, err
	}
	return s, s.out.flush() // so that a reader sees at once what this is
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

// newOutlet returns what blocks of pcapng are written to.
func newOutlet(w io.Writer) *outlet { return &outlet{to: w, count: capture.CountPackets} }

// put writes the buffer.
func (s *Writer) put() error {
	s.length += int64(len(s.buffer))
	return s.out.put(s.buffer)
}

// Packet implements Sink.
func (s *Writer) Packet(p *capture.Packet) error {
	full := s.files.Size > 0 && s.length > s.files.Size
	late := s.files.Every > 0 && s.file != nil && p.At-s.began >= int64(s.files.Every)
	if late && s.files.Count > 0 && s.files.Size == 0 && s.made == s.files.Count {
		return ErrEnough
	}
	s.total.At = p.At
	s.total.Received += 1 + p.Missing
	s.total.Dropped += p.Missing
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
		return userfile.Failed(err)
	}
	s.made++
	if s.turn++; s.files.Count > 0 && s.turn == s.files.Count && s.files.Size > 0 {
		s.turn = 0
	}
	s.file, s.out, s.length = file, newOutlet(file), 0
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
	err := errors.Join(s.out.flush(), s.Close())
	s.before += s.out.packets
	s.out = nil
	return err
}

// Close implements Sink.
func (s *Writer) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Flush implements Sink.
func (s *Writer) Flush() error {
	if s.out == nil {
		return nil
	}
	return s.out.flush()
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
	_ = s.put() // whose error is that of the end, too
	return s.end()
}

// Written implements Sink. Packets of files that were written over since count, too.
func (s *Writer) Written() uint64 {
	if s.out == nil {
		return s.before
	}
	return s.before + s.out.packets
}
