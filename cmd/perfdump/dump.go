package perfdump

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A Dump is the memory of a test: all that is registered, before the first message
// and when the test is over. With the packets of the test at hand it reports whether
// every byte came from where it should, and went there.
type Dump struct {
	Head
	Before, After []byte // Length bytes each
}

// A Head says what is where in the memory of a Dump.
type Head struct {
	Test    string `json:"test"`     // write-lat
	Size    int    `json:"size"`     // bytes of a message
	PathMTU int    `json:"path_mtu"` // bytes
	Address uint64 `json:"address"`  // of the first byte, as keys name it
	Length  int    `json:"length"`   // bytes
	LKey    uint32 `json:"lkey"`
	RKey    uint32 `json:"rkey"`
	Header  int    `json:"header"` // bytes of a receive before its message
	QPs     []QP   `json:"qps"`
}

// A QP is what a queue pair does to the memory. SENDs are taken from the places
// of Send, one after the other, and land in those of Receive. A message with an
// address is at the same distance from RemoteAddress there as from the first place of
// Send here: WRITEs and READs and atomics that this end asked for. What the peer asked
// for is where it says.
type QP struct {
	QPN           uint32 `json:"qpn"`
	RemoteQPN     uint32 `json:"remote_qpn"`
	RemoteAddress uint64 `json:"remote_address"`
	RemoteRKey    uint32 `json:"remote_rkey"`
	Send          Places `json:"send"`
	Receive       Places `json:"receive"`
}

// Places are where messages go in turn.
type Places struct {
	Offset uint64 `json:"offset"` // of the first, from the beginning of the memory
	Count  uint64 `json:"count"`
	Stride uint64 `json:"stride"` // bytes from one to the next
}

// Of is the offset of message n, counted from 0.
func (p Places) Of(n int) uint64 { return p.Offset + uint64(n)%p.Count*p.Stride }

// ErrDump is wrapped by the error about bytes that are no Dump.
var ErrDump = errors.New("no dump of a test's memory")

// WriteTo implements io.WriterTo: a line of JSON, the head, then the memory before and
// the memory after.
func (d *Dump) WriteTo(w io.Writer) (int64, error) {
	head, err := json.Marshal(d.Head)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, b := range [][]byte{append(head, '\n'), d.Before, d.After} {
		n, err := w.Write(b)
		if total += int64(n); err != nil {
			return total, err
		}
	}
	return total, nil
}

// Read reads what WriteTo wrote. The error wraps ErrDump when it is something
// else.
func Read(r io.Reader) (*Dump, error) {
	in := bufio.NewReader(r)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%w: no head: %w", ErrDump, err)
	}
	d := &Dump{}
	if err := json.Unmarshal(line, &d.Head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDump, err)
	}
	memory, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if d.Length <= 0 || len(memory)/2 != d.Length || len(memory)%2 != 0 {
		return nil, fmt.Errorf("%w: %d bytes for two times %d", ErrDump, len(memory), d.Length)
	}
	for _, q := range d.QPs {
		if q.Send.Count == 0 || q.Receive.Count == 0 {
			return nil, fmt.Errorf("%w: QP 0x%06x has no places", ErrDump, q.QPN)
		}
	}
	d.Before, d.After = memory[:d.Length:d.Length], memory[d.Length:]
	return d, nil
}
