package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/engine/capture"
	"xroce/xsk/xsktest/timeout"
)

// TestAnswersOfLiars: what would take much more memory than it has bytes, or is more than was asked
// for, is refused before it is believed.
func TestAnswersOfLiars(t *testing.T) {
	const begin = `{"version":1,"comm":"liar","devices":[`
	many := func(what string, n int) string { return strings.Repeat(what+",", n-1) + what }
	for name, tt := range map[string]struct{ says, want string }{
		"devices": {begin + many("{}", maxRowsAll+1) + "]}", "more than any program has"},
		"numbers": {begin + many("1", 2*maxRowsAll+1) + "]}", "more than any program has"},
		"members": {
			begin + `{"qp":[{"counters":{` + many(`"":1`, maxMembers+2) + "}}]}]}",
			"more than any program has",
		},
		"a number": {
			`{"version":1,"pid":` + strings.Repeat("1", 1<<20) + "}", "111... (104",
		},
		"nested": {begin + strings.Repeat("[", maxNesting), "nested 16 deep"},
		"rows":   {begin + `{"qp":[{},{}]}]}`, "2 rows of a kind, asked for 1"},
		"some devices": {
			begin + many("{}", maxDevices+1) + "]}", fmt.Sprint(maxDevices+1, " devices"),
		},
		"name": {
			begin + `{"ifname":"` + strings.Repeat("x", 300) + `"}]}`,
			"the name of a device has 300 bytes",
		},
		"counter": {
			begin + `{}],"counters":[[{"name":"` + strings.Repeat("x", 300) + `","value":1}]]}`,
			"the name of a counter has 300 bytes",
		},
		"process": {
			`{"version":1,"comm":"` + strings.Repeat("x", 300) + `"}`, "its name has 300 bytes",
		},
	} {
		dir, end := poseAlone(t, func(conn net.Conn) {
			_, _ = bufio.NewReader(conn).ReadString('\n') // the request
			_, _ = fmt.Fprintln(conn, tt.says)
		})
		answers, err := Ask(t.Context(), dir, 0, 1, false)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// An answer of megabytes takes longer than one may on a busy machine.
			t.Logf("%s: late, judged as if it had come", name)
			_, err = parseAnswer([]byte(tt.says), &Request{Get: getResources, Rows: 1})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(answers) > 0 {
			t.Errorf("%s: %d answers, %v", name, len(answers), err)
		}
		end()
	}
}

// TestLettersAreNotCounted: names may have what is a sign of JSON elsewhere.
func TestLettersAreNotCounted(t *testing.T) {
	name := strings.Repeat(`[{\",\\`, 30)
	says := `{"version":1,"comm":"x","devices":[{"ifname":"` + name + `"}]}` + "\n"
	a, err := parseAnswer([]byte(says), &Request{})
	if err != nil || len(a.Devices) != 1 || len(a.Devices[0].Device) != 30*5 {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestReasonIsOneLine: what a process says instead of an answer is bounded, and commands nothing.
func TestReasonIsOneLine(t *testing.T) {
	for says, want := range map[string]string{
		`no device "x" is open`:        `no device "x" is open`,
		"x\nxroce: all is well":        "x xroce: all is well",
		"\x1b[2J\u202e\xff":            "\ufffd[2J\ufffd\ufffd",
		strings.Repeat("\n", 1<<20):    strings.Repeat(" ", maxReason) + "... (1048576 bytes)",
		strings.Repeat("\u00e9", 2000): strings.Repeat("\u00e9", maxReason/2) + "... (4000 bytes)",
	} {
		line, err := json.Marshal(Answer{Error: says})
		if err != nil {
			t.Fatal(err)
		}
		_, err = parseAnswer(line, &Request{})
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("%.40q: %.100q", says, err)
		}
	}
}

// TestAskIsEnded: who does not answer keeps nobody who is to end, with a reason.
func TestAskIsEnded(t *testing.T) {
	reason := errors.New("that is enough")
	for name, says := range map[string]string{
		"silence":     "",
		"half a line": `{"version":1,`,
		"no capture":  `{"version":1}` + "\n",
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		dir, end := poseAlone(t, func(conn net.Conn) {
			_, _ = fmt.Fprint(conn, says)
			cancel(reason)
			_, _ = io.Copy(io.Discard, conn) // until the other end gives up
		})
		begun := time.Now()
		_, err := Watch(ctx, dir, Query{PID: os.Getpid()})
		if took := time.Since(begun); !errors.Is(err, reason) || took > timeout.Scaled(askTime/2) {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		end()
	}
}

// TestStopIsNotHeeded: a program that goes on with a capture, or says nothing, does not keep who
// ends it; what was taken is whole.
func TestStopIsNotHeeded(t *testing.T) {
	header := string(capture.AppendHeader([]byte(`{"version":1}`+"\n"), "xr1", 0))
	packet := capture.AppendPacket(nil, &capture.Packet{At: 1, Head: make([]byte, 60)}, 0)
	for name, goOn := range map[string]func(net.Conn){
		"silence": func(net.Conn) {},
		"flood": func(conn net.Conn) {
			for err := error(nil); err == nil; {
				_, err = conn.Write(packet)
			}
		},
	} {
		gone := make(chan struct{})
		dir, end := poseAlone(t, func(conn net.Conn) {
			_, _ = fmt.Fprint(conn, header+string(packet))
			goOn(conn)
			<-gone
		})
		p, err := Watch(t.Context(), dir, Query{PID: os.Getpid()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Next(); err != nil {
			t.Error(err)
		}
		begun := time.Now()
		err = p.Stop()
		for err == nil {
			_, err = p.Next()
		}
		if took := time.Since(begun); !errors.Is(err, io.EOF) || took > timeout.Scaled(4*stopTime) {
			t.Errorf("%s: %v after %v", name, err, took)
		}
		if _, known := p.Statistics(); known {
			t.Errorf("%s: there are statistics", name)
		}
		close(gone)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		end()
	}
}
