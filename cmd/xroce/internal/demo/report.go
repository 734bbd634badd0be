package demo

import (
	"fmt"
	"time"
)

// A Report is what the demonstration came to.
type Report struct {
	Wire     Wire         `json:"wire"`
	Passed   int          `json:"passed"`
	Failed   int          `json:"failed"`
	Failures []string     `json:"failures,omitempty"`
	Scenes   []Scene      `json:"scenes"`
	Capture  CaptureFacts `json:"capture"`
	Messages []Speech     `json:"messages"`
	Copy     CopyFacts    `json:"copy"`
	Loss     []LossRow    `json:"loss"`
	Rows     []Row        `json:"rows"`
	Kept     []string     `json:"kept,omitempty"` // what was not removed, and how to
	Seconds  float64      `json:"seconds"`
}

// A Wire says what the demonstration ran on.
type Wire struct {
	Backend  string `json:"backend"`            // xsk, asavie or sim
	XDPMode  string `json:"xdp_mode,omitempty"` // native or generic
	Copy     string `json:"copy_mode,omitempty"`
	Device   string `json:"device"`
	MTU      int    `json:"mtu"`      // bytes
	PathMTU  int    `json:"path_mtu"` // bytes
	Reason   string `json:"reason,omitempty"`
	hostsAre string
}

// String is the first lines of the demonstration.
func (w Wire) String() string {
	s := fmt.Sprintf("wire: %s, backend %s,\n      ", w.hostsAre, w.Backend)
	if w.XDPMode != "" {
		s += fmt.Sprintf("%s XDP, %s mode, ", w.XDPMode, w.Copy)
	}
	s += fmt.Sprintf("device %s, MTU %d, path MTU %d", w.Device, w.MTU, w.PathMTU)
	if w.Reason != "" {
		s += "\n      (" + w.Reason + ")"
	}
	return s
}

// A Scene is a service that was shown.
type Scene struct {
	Name   string `json:"name"`
	What   string `json:"what"`
	Checks int    `json:"checks"` // also those that failed

	Notes []string `json:"notes,omitempty"` // what it has to tell, in lines
}

// CaptureFacts say what was captured.
type CaptureFacts struct {
	File        string `json:"file,omitempty"` // empty when it was removed
	Packets     int    `json:"packets"`
	Retransmits int    `json:"retransmits"` // packets that were sent more than once
}

// A Speech is what was said for a message, as the capture has it. The first tells how a connection
// begins, the last how it ends.
type Speech struct {
	What     string `json:"what"`
	Size     int    `json:"size,omitempty"` // bytes
	Protocol string `json:"protocol,omitempty"`
	Why      string `json:"why,omitempty"`
	Lines    []Line `json:"lines"`
}

// A Line is a control message, a frame, a READ or a WRITE.
type Line struct {
	From int    `json:"from"` // the host
	Text string `json:"text"`
	Full string `json:"full"` // with all fields
}

// CopyFacts say what file was copied.
type CopyFacts struct {
	Source  string  `json:"source"` // its path, or what it was when it was made for this
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	SHA256  string  `json:"sha256"`
}

// GbPerSecond is the rate of the copy in units of 10^9 bits a second.
func (c CopyFacts) GbPerSecond() float64 { return gigabits(c.Bytes, c.Seconds) }

// A LossRow is a file that was sent over a cable that loses frames.
type LossRow struct {
	Recovery    string  `json:"recovery"`
	Extensions  string  `json:"extensions"`
	Share       float64 `json:"loss"` // of the frames in each direction
	Bytes       int64   `json:"bytes"`
	Seconds     float64 `json:"seconds"`
	Frames      uint64  `json:"frames"` // of both directions
	Lost        uint64  `json:"lost"`
	Retransmits uint64  `json:"retransmits"` // packets that were sent again
	SHA256      string  `json:"sha256"`
	// Tries is more than 1 where a connection was lost: the hosts did not run for longer than
	// its retries lasted. The rest of the row is of the last try.
	Tries int `json:"tries"`
}

// GbPerSecond is the rate of the file in units of 10^9 bits a second.
func (l LossRow) GbPerSecond() float64 { return gigabits(l.Bytes, l.Seconds) }

// A Row is a line of the table: one operation at one size.
type Row struct {
	Operation string  `json:"operation"`
	Size      int     `json:"size"` // bytes
	Messages  float64 `json:"messages_per_second"`
	Gigabits  float64 `json:"gigabits_per_second"` // payload, 10^9 bits
	// Microseconds is half of the mean round trip; of a READ and an atomic
	// operation, which have no other half, the whole.
	Microseconds float64 `json:"half_round_trip_us"`
}

func gigabits(bytes int64, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return float64(bytes) * 8 / 1e9 / seconds
}

// A tally counts checks.
type tally struct{ report *Report }

// check counts one, and notes what failed.
func (t tally) check(ok bool, format string, args ...any) {
	if ok {
		t.report.Passed++
		return
	}
	t.report.Failed++
	// A broken wire would fail everything: the first ones tell the story.
	const enough = 20
	if len(t.report.Failures) < enough {
		t.report.Failures = append(t.report.Failures, fmt.Sprintf(format, args...))
	}
}

// since is the time since start in seconds.
func since(start time.Time) float64 { return time.Since(start).Seconds() }
