package worker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Names in reports that what reads them looks for.
const (
	// RC begins Report.Mode of reliable connections of ours.
	RC = "RC"
	// Messages begins Report.Mode of messages of ours.
	Messages = "messages"
	// DroppedOnPurpose counts the frames that a lossy link dropped on their way
	// out.
	DroppedOnPurpose = "dropped_on_purpose"
	// Captured counts the packets that a capture has, and CaptureMissing those that it has not for
	// want of room.
	Captured       = "captured"
	CaptureMissing = "capture_missing"
)

// A Report is what one worker did.
type Report struct {
	Packets  uint64            `json:"packets"`            // within the window
	Bytes    uint64            `json:"bytes"`              // within the window
	Seconds  float64           `json:"seconds"`            // length of the window
	Total    uint64            `json:"total"`              // packets in all, warm-up and drain too
	Mode     string            `json:"mode"`               // what was used, for people
	RTT      *RTT              `json:"rtt,omitempty"`      // of a latency run
	Nth      []Nth             `json:"nth,omitempty"`      // of the first messages
	Ratio    float64           `json:"ratio,omitempty"`    // of two rates, taken in turn
	Cost     *Cost             `json:"cost,omitempty"`     // of the window
	Counters map[string]uint64 `json:"counters,omitempty"` // loss and send calls, kernel names
	GaveUp   string            `json:"gave_up,omitempty"`  // why there is nothing to report
}

// RTT are round trip times in nanoseconds.
type RTT struct {
	Samples uint64 `json:"samples"`
	P50     int64  `json:"p50"`
	P90     int64  `json:"p90"`
	P99     int64  `json:"p99"`
	P999    int64  `json:"p999"`
	Max     int64  `json:"max"`
}

// Nth are the round trips of the n-th message of each of many connections.
type Nth struct {
	Message int `json:"message"` // counted from 1
	RTT     RTT `json:"rtt"`
}

// PerSecond is the packet rate in the window, 0 when there was none.
func (r Report) PerSecond() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Packets) / r.Seconds
}

// errNoGo means that the harness went away before it said go.
var errNoGo = errors.New("worker: the harness is gone")

// Ready says over out that the sockets are open, and waits on in for the go.
func Ready(in io.Reader, out io.Writer) error {
	_, err := Exchange(in, out, "")
	return err
}

// Exchange is Ready for workers that must know something of each other: the card
// goes out with the ready, and the other worker's comes in with the go. A card is
// one line.
func Exchange(in io.Reader, out io.Writer, card string) (peer string, err error) {
	if _, err := fmt.Fprintln(out, strings.TrimSpace("ready "+card)); err != nil {
		return "", fmt.Errorf("worker: %w", err)
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return "", errNoGo
	}
	_, peer, _ = strings.Cut(strings.TrimSpace(line), " ")
	return peer, nil
}

// WriteTo prints the report as one line.
func (r Report) WriteTo(out io.Writer) (int64, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("worker: %w", err)
	}
	n, err := out.Write(append(line, '\n'))
	return int64(n), err
}
