package dump

import (
	"errors"
	"io"

	"xroce/engine/capture"
)

// A Source gives packets, those that are wanted alone.
type Source interface {
	// Next returns the next packet, which is valid until the next call. The error is io.EOF
	// at the end.
	Next() (*capture.Packet, error)
	// Buffered reports whether Next would not wait.
	Buffered() bool
	// Interface is the name of the interface.
	Interface() string
	// Statistics returns what was counted, false when that is not known yet.
	Statistics() (capture.Statistics, bool)
	// Stop has Next end with io.EOF after what was under way. It may be called while Next
	// waits.
	Stop() error
	// Close gives back what the source holds.
	Close() error
}

// A Sink takes packets.
type Sink interface {
	// Packet takes a packet, of which it keeps nothing.
	Packet(p *capture.Packet) error
	// Flush hands on what was taken.
	Flush() error
	// End ends what was written, with what the source counted.
	End(s capture.Statistics) error
	// Close gives back what the sink holds, where it did not come to End.
	Close() error
	// Written is how many packets have reached the file or the output. After End without an
	// error that is all that were taken.
	Written() uint64
}

// ErrEnough is what a Sink returns with a packet that it did not take, because it is full.
var ErrEnough = errors.New("dump: enough")

// Run takes packets from a source to a sink, count at most, 0 for no limit. It returns how
// many were taken; where the sink has failed, not all of them were written. What was counted is
// known to the source afterwards.
func Run(from Source, to Sink, count uint64) (taken uint64, err error) {
	defer func() { err = errors.Join(err, to.Close()) }()
	for stopped := false; ; {
		p, err := from.Next()
		if err != nil {
			s, _ := from.Statistics()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return taken, errors.Join(err, to.End(s))
		}
		if stopped {
			continue // to the statistics, which are behind
		}
		if err = to.Packet(p); !errors.Is(err, ErrEnough) {
			taken++
			if err != nil {
				return taken, err
			}
		}
		if stopped = err != nil || taken == count; stopped {
			if err := from.Stop(); err != nil {
				return taken, errors.Join(err, to.Flush())
			}
		}
		if stopped || !from.Buffered() {
			if err := to.Flush(); err != nil {
				return taken, err
			}
		}
	}
}
