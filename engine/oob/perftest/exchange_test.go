package perftest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// A line is one message of a recording.
type line struct {
	client bool // the client said it
	bytes  []byte
}

// recording reads testdata/NAME.txt: who said what, in order.
func recording(t *testing.T, name string) []line {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []line
	for s := bufio.NewScanner(f); s.Scan(); {
		who, quoted, _ := strings.Cut(s.Text(), " ")
		if who == "#" {
			continue
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || who != "client" && who != "server" {
			t.Fatalf("%s: %s: %v", f.Name(), s.Text(), err)
		}
		lines = append(lines, line{who == "client", []byte(text)})
	}
	return lines
}

// said is what one end said, in order.
func said(lines []line, client bool) [][]byte {
	var list [][]byte
	for _, l := range lines {
		if l.client == client {
			list = append(list, l.bytes)
		}
	}
	return list
}

// A replay is the connection of one end in a recording: it hears what the other end
// said, and what it says is kept.
type replay struct {
	io.Reader
	io.Writer
}

// shapes are the steps of each recorded test: V versions, S system, M MTU, K keys,
// R reports, D done.
var shapes = map[string]string{
	"send_bw":       "VSMKKKKKD",
	"send_bw_ipv6":  "VSMKKKKKD",
	"send_lat":      "VSMKKKKKD",
	"write_bw":      "VSMKKKKRKD",
	"write_bw_both": "VSMKKKKKKRKD",
	"write_lat":     "VSMKKKK",
	"atomic_bw":     "VSMKKKKRKD",
}

// speak makes the steps of a shape, saying what the end of the recording said.
func speak(c *Conn, shape string, mine [][]byte) (heard []any, err error) {
	for _, step := range shape {
		var got any
		switch step {
		case 'V':
			got, _, err = c.Versions(OurVersion, false)
		case 'S':
			got, err = c.System(System{Cycle: 4096, CacheLine: 64})
			mine = mine[1:]
		case 'M':
			got, err = c.MTU(wire.MTU1024)
		case 'K':
			var local Endpoint
			if local, err = ParseEndpoint(strings.TrimRight(string(mine[0]), "\x00")); err == nil {
				got, err = c.Keys(local)
			}
		case 'R':
			var v [reportFields]uint64
			for i := range v {
				v[i] = uint64(new(big8).set(mine[i]))
			}
			got, err = c.Reports(reportOf(v))
			mine = mine[reportFields-1:]
		case 'D':
			err = c.Done()
		}
		if err != nil {
			return heard, fmt.Errorf("step %c: %w", step, err)
		}
		heard = append(heard, got)
		mine = mine[1:]
	}
	return heard, nil
}

// big8 reads eight bytes the slow way.
type big8 uint64

func (v *big8) set(b []byte) big8 {
	for _, octet := range b {
		*v = *v<<8 | big8(octet)
	}
	return *v
}

// TestRecordings plays each end of what two real tools said to each other: we must
// understand every message, and say the same bytes.
func TestRecordings(t *testing.T) {
	for name, shape := range shapes {
		for _, client := range []bool{true, false} {
			lines := recording(t, name)
			theirs, mine := said(lines, !client), said(lines, client)
			var out bytes.Buffer
			in := bytes.NewReader(bytes.Join(theirs, nil))
			heard, err := speak(New(replay{in, &out}, client), shape, mine)
			if err != nil {
				t.Errorf("%s, client %v: after %v: %v", name, client, heard, err)
				continue
			}
			if diff := cmp.Diff(bytes.Join(mine, nil), out.Bytes()); diff != "" {
				t.Errorf("%s, client %v (-tool +us):\n%s", name, client, diff)
			}
			if in.Len() != 0 {
				t.Errorf("%s, client %v: %d bytes were not read", name, client, in.Len())
			}
		}
	}
}

func TestRecordedValues(t *testing.T) {
	lines := recording(t, "write_bw_both")
	in := bytes.NewReader(bytes.Join(said(lines, false), nil))
	heard, err := speak(New(replay{in, io.Discard}, true), shapes["write_bw_both"],
		said(lines, true))
	if err != nil {
		t.Fatal(err)
	}
	want := []any{
		Version("6.06"),
		System{Cycle: 4096, CacheLine: 64},
		wire.MTU1024,
		Endpoint{
			OutReads: 1, QPN: 0x23, PSN: 0x92dc23, RKey: 0x1360, VAddr: 0x55feaf6ca000,
			GID: wire.GIDFromIPv4([4]byte{192, 168, 77, 2}),
		},
	}
	if diff := cmp.Diff(want, heard[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	report := heard[len(heard)-3].(Report)
	if report.Size != 1000 || report.Iters != 40 || report.Peak < 0.7 || report.Peak > 0.8 ||
		report.Average >= report.Peak {
		t.Errorf("report %+v", report)
	}
}

// TestBothEnds lets our two ends speak to each other.
func TestBothEnds(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	deadline := time.Now().Add(timeout.Scaled(time.Minute))
	for _, c := range []net.Conn{a, b} {
		if err := c.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
	}
	mine := Report{Size: 1, Iters: 2, Peak: 3.5, Average: 4.25, MsgRate: 1e-9}
	theirs := Report{Size: 1 << 40, Iters: 1 << 41, Peak: 0, Average: -1, MsgRate: 1e300}
	type outcome struct {
		system System
		mtu    wire.MTU
		report Report
		err    error
	}
	play := func(conn net.Conn, client bool, s System, m wire.MTU, r Report) (o outcome) {
		c := New(conn, client)
		if _, _, o.err = c.Versions("5.70", false); o.err != nil {
			return o
		}
		if o.system, o.err = c.System(s); o.err != nil {
			return o
		}
		if o.mtu, o.err = c.MTU(m); o.err != nil {
			return o
		}
		o.report, o.err = c.Reports(r)
		return o
	}
	done := make(chan outcome)
	go func() {
		done <- play(b, false, System{Cycle: 1 << 16, CacheLine: 64}, wire.MTU4096, theirs)
	}()
	client := play(a, true, System{Cycle: 4096, CacheLine: 128}, wire.MTU512, mine)
	server := <-done
	both := System{Cycle: 1 << 16, CacheLine: 128}
	if want := (outcome{both, wire.MTU512, theirs, nil}); client != want {
		t.Errorf("client %+v, not %+v", client, want)
	}
	if want := (outcome{both, wire.MTU512, mine, nil}); server != want {
		t.Errorf("server %+v, not %+v", server, want)
	}
}

// hear lets the client make one step while the server says b and no more.
func hear(b string, step func(c *Conn) error) error {
	return step(New(replay{strings.NewReader(b), io.Discard}, true))
}

func TestRefuses(t *testing.T) {
	versions := func(c *Conn) error { _, _, err := c.Versions(OurVersion, true); return err }
	system := func(c *Conn) error { _, err := c.System(System{4096, 64}); return err }
	mtu := func(c *Conn) error { _, err := c.MTU(wire.MTU1024); return err }
	keys := func(c *Conn) error { _, err := c.Keys(Endpoint{}); return err }
	good := string(sample.AppendText(nil))
	for _, c := range []struct {
		name, said string
		step       func(c *Conn) error
		want       error
		text       string // part of the error
	}{
		{"old", pad("5.31", 16), versions, errors.ErrUnsupported, "5.31, we are 6.06"},
		{"no number", pad("hello", 16), versions, ErrMessage, "hello"},
		{"web browser", "GET / HTTP/1.1\r\n", versions, ErrMessage, "we are version 6.06"},
		{"for a terminal", pad("5.1\x1b[2J", 16), versions, ErrMessage, `5.1\x1b[2J`},
		{"empty", pad("", 16), versions, ErrMessage, "version"},
		{"not ended", "6.06666666666666", versions, ErrMessage, "version"},
		{"not a number", pad("1.2.3", 16), versions, ErrMessage, "1.2.3"},
		{"escape codes", pad("6.0\x1b[2J", 16), versions, ErrMessage, `6.0\x1b[2J`},
		{
			"huge cycle", "\xff\xff\xff\xff", system, ErrMessage,
			"buffer cycle of 4294967295 bytes, 1048576 are the most",
		},
		{"a huge page", "\x00\x20\x00\x00", system, ErrMessage, "2097152 bytes, 1048576 are"},
		{
			"huge line", "\x00\x00\x10\x00\x00\x00\x10\x01", system, ErrMessage,
			"cache line size of 4097 bytes, 4096 are the most",
		},
		{"MTU 0", "0\x00", mtu, ErrMessage, "path MTU"},
		{"MTU 6", "6\x00", mtu, ErrMessage, "path MTU"},
		{"MTU 33", "33", mtu, ErrMessage, "path MTU"},
		{"no GID", pad(good[:50]+good[98:106], 59), keys, ErrNoGID, "-x INDEX"},
		{
			"zero GID", pad(strings.ReplaceAll(good, "ff", "00")[:86]+"00:00:00:00"+good[97:], 108),
			keys, ErrNoGID, "-x INDEX",
		},
		{"no end", good + "0", keys, ErrMessage, "keys"},
		{"no colon", strings.Replace(good, ":", "-", 1) + "\x00", keys, ErrMessage, "keys"},
		{"wrong done", "down\x00", (*Conn).Done, ErrMessage, "instead of done"},
		{"half keys", good[:70], keys, io.ErrUnexpectedEOF, "of 49 bytes"},
		{"nothing", "", keys, io.EOF, "closed the connection after 0 of 59 bytes"},
	} {
		err := hear(c.said, c.step)
		if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// pad fills text up with NULs.
func pad(text string, n int) string { return text + strings.Repeat("\x00", n-len(text)) }

func TestVersionTooLongToSend(t *testing.T) {
	if _, _, err := New(replay{strings.NewReader(""), io.Discard}, true).
		Versions("6.0666666666666666", false); !errors.Is(err, ErrMessage) {
		t.Errorf("%v", err)
	}
}

// TestDoneOfLaterTools: they close the connection instead.
func TestDoneOfLaterTools(t *testing.T) {
	if err := hear("", (*Conn).Done); err != nil {
		t.Errorf("%v", err)
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	lines := recording(t, "write_bw")
	all := bytes.Join(said(lines, false), nil)
	for n := range len(all) - len("done\x00") {
		_, err := speak(New(replay{bytes.NewReader(all[:n]), io.Discard}, true),
			shapes["write_bw"], said(lines, true))
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestDeadlineEndsTheExchange(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if err := a.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	_, _, err := New(a, false).Versions(OurVersion, true)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
