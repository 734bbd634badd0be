package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"xroce/engine"
)

// Bounds of what an answer may have, beside its length: what takes two bytes of JSON may take some
// hundred in memory.
const (
	maxDevices = 4096
	maxRowsAll = 1 << 20 // elements of all arrays
	maxMembers = 1 << 23 // of all objects
	maxNesting = 16
	maxName    = 255 // bytes: interfaces and processes have 15 at most
	maxReason  = 2 << 10
)

// An Answer is what a process says of itself.
type Answer struct {
	Version int                `json:"version"`
	PID     int                `json:"pid"`
	Comm    string             `json:"comm"`
	Devices []engine.Resources `json:"devices"`
	// Counters are those of each device, in the order of Devices, when they were asked for.
	Counters [][]engine.Counter `json:"counters,omitempty"`
	Error    string             `json:"error,omitempty"` // why there is nothing else

	// At is when it was read: who stalls is late with its own answer, not with those of others.
	At time.Time `json:"-"`
}

// parseAnswer reads what somebody says to be an answer to a request.
func parseAnswer(line []byte, q *Request) (a Answer, err error) {
	if err = checkSize(line); err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		return a, fmt.Errorf("no answer: %s", readable(err.Error())) // it has words of the document
	}
	switch {
	case a.Error != "":
		return a, &RefusedError{readable(a.Error)}
	case a.Version != version:
		return a, fmt.Errorf("it speaks version %d, we speak %d", a.Version, version)
	case a.Counters != nil && len(a.Counters) != len(a.Devices):
		return a, fmt.Errorf("counters of %d devices, of %d", len(a.Counters), len(a.Devices))
	case len(a.Devices) > maxDevices:
		return a, fmt.Errorf("no answer: %d devices", len(a.Devices))
	case len(a.Comm) > maxName:
		return a, fmt.Errorf("no answer: its name has %d bytes", len(a.Comm))
	}
	for _, of := range a.Counters {
		for _, c := range of {
			if len(c.Name) > maxName {
				return a, fmt.Errorf("no answer: the name of a counter has %d bytes", len(c.Name))
			}
		}
	}
	for i := range a.Devices {
		if err := checkDevice(&a.Devices[i], q.Rows); err != nil {
			return a, fmt.Errorf("no answer: %w", err)
		}
	}
	return a, nil
}

// readable is what a process says, for one line of a terminal: a line feed is a space, what else
// cannot be printed is U+FFFD, and there is not more than a reason has.
func readable(reason string) string {
	reason = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return ' '
		case strconv.IsPrint(r):
			return r
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(reason, string(utf8.RuneError)))
	if n := len(reason); n > maxReason {
		return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(reason[:maxReason], ""), n)
	}
	return reason
}

// checkDevice refuses more rows of a device than were asked for.
func checkDevice(r *engine.Resources, rows int) error {
	most := max(len(r.PDs), len(r.MRs), len(r.MWs), len(r.CQs), len(r.QPs), len(r.SRQs))
	switch {
	case len(r.Device) > maxName:
		return fmt.Errorf("the name of a device has %d bytes", len(r.Device))
	case most > rows:
		return fmt.Errorf("%d rows of a kind, asked for %d", most, rows)
	}
	return nil
}

// errTooMuch says that a document would take more memory than any answer does.
var errTooMuch = errors.New("more than any program has")

// checkSize counts what is in a document before memory is taken for it. Whether it is one at all
// it does not know.
func checkSize(document []byte) error {
	var inArray [maxNesting]bool
	depth, elements, members := 0, 0, 0
	text := false // within a string
	for i := 0; i < len(document); i++ {
		c := document[i]
		switch {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[', c == '{':
			if depth == maxNesting {
				return fmt.Errorf("%w: nested %d deep", errTooMuch, depth)
			}
			inArray[depth] = c == '['
			depth++
			elements++
		case c == ']', c == '}':
			depth = max(depth-1, 0)
		case c == ',' && depth > 0 && inArray[depth-1]:
			elements++
		case c == ',':
			members++
		}
		if elements > 2*maxRowsAll || members > maxMembers { // a row is an element and an object
			return errTooMuch
		}
	}
	return nil
}
