package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/host"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/oob"
	"xroce/xsk/xsktest/timeout"
)

// tokenFile makes a file with a token.
func tokenFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte("a token for two ends\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// kept makes a bench remember the devices that it opens.
func (b *bench) kept() func(name string) *engine.Device {
	var mu sync.Mutex
	devices := map[string]*engine.Device{}
	open := b.open
	b.open = func(name string, o engine.Options) (*engine.Device, error) {
		d, err := open(name, o)
		mu.Lock()
		defer mu.Unlock()
		devices[name] = d
		return d, err
	}
	return func(name string) *engine.Device {
		mu.Lock()
		defer mu.Unlock()
		return devices[name]
	}
}

// dial connects to a server as a host of its own.
func (b bench) dial(t *testing.T, from string) *transfer.Link {
	t.Helper()
	s := b.station(t, from)
	link, err := s.Dial(t.Context(), netip.MustParseAddrPort(fmt.Sprint("192.0.2.1:", oob.Port)))
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// station opens a device with what files are sent over.
func (b bench) station(t *testing.T, name string) *transfer.Station {
	t.Helper()
	dev, err := b.open(name, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	s, err := transfer.OpenStation(dev, 0, cm.Options{Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// say says something to the other end.
func say(t *testing.T, link *transfer.Link, text string) {
	t.Helper()
	err := link.Conn.PostSend(&msg.Send{Buffers: [][]byte{[]byte(text)}, Tag: controlTag})
	if err != nil {
		t.Fatal(err)
	}
}

// controlTag is that of what ends say to each other, dataTag that of files.
const (
	controlTag = 1
	dataTag    = 2
)

// chunk is a part of a file.
func chunk(b []byte) *msg.Send { return &msg.Send{Buffers: [][]byte{b}, Tag: dataTag} }

// hear waits for what the other end says, "" when the connection is over.
func hear(link *transfer.Link) string {
	r := &msg.Receive{
		Buffers: [][]byte{make([]byte, 16<<10)}, From: link.Conn, Tag: controlTag, Mask: ^uint64(0),
	}
	if link.Endpoint.PostReceive(r) != nil {
		return ""
	}
	<-r.Done()
	return string(r.Buffers[0][:r.Length])
}

// TestStrangersHoldNothing: many who connect and say nothing, or only half of what they
// should, take no place from others and leave nothing at the device.
func TestStrangersHoldNothing(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, _ := simBench(t)
	device := b.kept()
	token := tokenFile(t)
	server := b.start(t, "serve", "-d", "xr1", "--dir", t.TempDir(), "--token-file", token)
	server.listenPort(t)
	idle := device("xr1").Resources(0).Total
	strangers := b.station(t, "xr9")
	for n := range 2 * maxWaiting { // of which many are ending
		link, err := strangers.Dial(t.Context(),
			netip.MustParseAddrPort(fmt.Sprint("192.0.2.1:", oob.Port)))
		if err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			say(t, link, `{"protocol":3,"nonce":"`+strings.Repeat("A", n))
		}
	}
	name, _ := randomFile(t, 5000, 0o600)
	for n := range 3 {
		i := b.run(t, "copy", name, fmt.Sprintf("192.0.2.1:x%d", n), "-d", "xr2",
			"--token-file", token)
		if i.code != exitOK {
			t.Errorf("behind strangers: code %d, %s", i.code, i.stderr)
		}
	}
	// The last client is through before the server has given all back.
	for end := time.Now().Add(timeout.Scaled(time.Minute)); ; {
		got := device("xr1").Resources(0).Total
		if got == idle {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("left at the device: %+v, not %+v", got, idle)
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
}

// TestServeOnceIsNotForStrangers: who is refused at the door does not end a server that
// waits for one file.
func TestServeOnceIsNotForStrangers(t *testing.T) {
	b, _ := simBench(t)
	token, name := tokenFile(t), ""
	server := b.start(t, "serve", "--once", "-d", "xr1", "--dir", t.TempDir(), "--token-file",
		token)
	server.listenPort(t)
	link := b.dial(t, "xr9")
	say(t, link, "GET / HTTP/1.1\r\n")
	link.Close()
	name, _ = randomFile(t, 10, 0o600)
	copyTo := []string{"copy", name, "192.0.2.1:x", "-d", "xr2"}
	i := b.run(t, copyTo...)
	if i.code != exitFailure {
		t.Errorf("without the token: code %d", i.code)
	}
	contains(t, i.stderr, "--token-file, or XROCE_TOKEN")
	t.Setenv(tokenEnv, "a token of another kind")
	i = b.run(t, copyTo...)
	contains(t, i.stderr, "that of the peer is another one")
	t.Setenv(tokenEnv, "too short")
	if i = b.run(t, copyTo...); i.code != exitFailure {
		t.Errorf("a short token: code %d", i.code)
	}
	contains(t, i.stderr, "XROCE_TOKEN: token of 9 bytes")
	i = b.run(t, append(copyTo, "--token-file", token)...)
	if server.wait(t); i.code != exitOK || server.code != exitOK {
		t.Errorf("with the token: code %d, %s, server %d, %s", i.code, i.stderr, server.code,
			server.stderr)
	}
}

// TestServeNeedsAToken: without one it is for everybody, if that is said, or says how to get
// one.
func TestServeNeedsAToken(t *testing.T) {
	b, _ := simBench(t)
	args := []string{"serve", "-d", "xr1", "--dir", t.TempDir()}
	for _, c := range []struct {
		more, at string
		ready    string
	}{
		{"--insecure", "0.0.0.0:18515", "from everybody, at port 18515"},
		{"--token-file " + tokenFile(t), "0.0.0.0:18515", "with the token"},
		{"--insecure --listen 192.0.2.1 -p 7", "192.0.2.1:7", "at 192.0.2.1:7"},
	} {
		i := b.start(t, append(args, strings.Fields(c.more)...)...)
		i.listenPort(t)
		addr := (<-i.addr).String()
		i.cancel()
		i.wait(t)
		if addr != c.at {
			t.Errorf("%q listens at %s", c.more, addr)
		}
		contains(t, i.stderr, "xroce: ready for files to ", c.ready, "xr1")
	}
	for _, more := range []string{"", "--listen 0.0.0.0", "--listen 127.0.0.1"} {
		i := b.run(t, append(args, strings.Fields(more)...)...)
		if i.code != exitUsage {
			t.Errorf("%q without a token: code %d", more, i.code)
		}
		contains(t, i.stderr, "--token-file FILE", "umask 077; head -c 32", "--insecure")
	}
}

// TestServeDefaults: nothing is replaced or hidden, and modes are those of the mask.
func TestServeDefaults(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	server := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", dir, "--max-file", "1K",
		"--max-total", "1500")
	server.listenPort(t)
	for _, c := range []struct {
		size       int
		path, want string // want is in stderr, "" for success
	}{
		{1000, "x", ""},
		{1000, "x", "file already exists (serve --overwrite"},
		{1, ".bashrc", "serve --dotfiles"},
		{1025, "y", "serve --max-file"},
		{501, "y", "more than are taken (serve --max-total)"},
	} {
		name, _ := randomFile(t, c.size, 0o777)
		i := b.run(t, "copy", name, "192.0.2.1:"+c.path, "-d", "xr2")
		if ok := c.want == ""; ok != (i.code == exitOK) || !strings.Contains(i.stderr, c.want) {
			t.Errorf("%+v: code %d, %s", c, i.code, i.stderr)
		}
	}
	onlyFiles(t, dir, "x")
	info, err := os.Stat(filepath.Join(dir, "x"))
	if err != nil || info.Size() != 1000 || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

// evil is what a peer may say.
const evil = "\x1b]0;owned\x07\u009b2J\u202e\r\nxroce: all is well"

// obeyed are pieces of evil that a terminal obeys, or a reader believes.
var obeyed = []string{"\x1b", "\x07", "\u009b", "\u202e", "\r", "\nxroce: all"}

// TestResultsAreNotCommands: a hostile server names the file that it received as it
// likes. What of it is printed as a result, as JSON and as an error is spelled out.
func TestResultsAreNotCommands(t *testing.T) {
	for _, inJSON := range []bool{false, true} {
		var stdout, stderr bytes.Buffer
		a := newApp(&stdout, &stderr)
		a.json = inJSON
		if err := a.printTransfer("copied", "host", transfer.Result{Path: evil}); err != nil {
			t.Fatal(err)
		}
		a.printf("%s\n", strings.TrimSuffix(evil, "\nxroce: all is well"))
		a.complain("%s\n", strings.TrimSuffix(evil, "\nxroce: all is well"))
		a.printJSONError(exitFailure, errors.New(evil))
		for _, c := range obeyed {
			if strings.Contains(stdout.String()+stderr.String(), c) {
				t.Errorf("%q in %q, %q", c, &stdout, &stderr)
			}
		}
		contains(t, stdout.String(), "owned")
		contains(t, stderr.String(), "owned")
	}
}

// TestTerminalIsNotCommanded: what peers say is printed by both ends, as logs, results
// and JSON, and none of it is obeyed.
func TestTerminalIsNotCommanded(t *testing.T) {
	b, _ := simBench(t)
	quiet := func(name string, i *invocation) {
		t.Helper()
		for _, c := range obeyed {
			if strings.Contains(i.stdout+i.stderr, c) {
				t.Errorf("%s: %q in %q %q", name, c, i.stdout, i.stderr)
			}
		}
	}
	name, _ := randomFile(t, 10, 0o600)
	for _, form := range []string{"text", "json"} {
		args := []string{"serve", "-vv", "-d", "xr1", "--insecure", "--dir", t.TempDir()}
		args = append(args, "--log-format", form)
		if form == "json" {
			args = append(args, "-j")
		}
		server := b.start(t, args...)
		server.listenPort(t)
		link := b.dial(t, "xr"+map[string]string{"text": "8", "json": "9"}[form])
		text, err := json.Marshal(map[string]any{"error": evil})
		if err != nil {
			t.Fatal(err)
		}
		say(t, link, string(text))
		if hear(link) == "" {
			t.Error("no answer")
		}
		link.Close()
		i := b.run(t, "copy", name, "192.0.2.1:"+evil, "-d", "xr2")
		quiet("client", i)
		server.cancel()
		quiet("server", server.wait(t))
		contains(t, i.stdout+server.stdout+server.stderr, "owned")
	}
	hostile := b.station(t, "xr1")
	l, err := hostile.Endpoint.Listen(netip.MustParseAddrPort("192.0.2.1:7000"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept(t.Context())
		if err != nil {
			return
		}
		link := &transfer.Link{Endpoint: hostile.Endpoint, Conn: conn}
		hear(link)
		text, _ := json.Marshal(map[string]any{"error": evil})
		say(t, link, string(text))
		link.Close()
	}()
	i := b.run(t, "copy", name, "192.0.2.1:", "-d", "xr2", "-p", "7000")
	quiet("client of a hostile server", i)
	contains(t, i.stderr, `\x1b]0;owned\a`)
}

// TestCopyOfNoRegularFile: a FIFO and a device are refused without being opened, which
// would wait for ever, and before the server is met.
func TestCopyOfNoRegularFile(t *testing.T) {
	b, _ := simBench(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{fifo, link, os.DevNull} {
		i := b.run(t, "copy", file, "192.0.2.1:", "-d", "xr2", "-p", "1")
		if i.code != exitFailure || !strings.Contains(i.stderr, "no regular file") {
			t.Errorf("%s: code %d, %s", file, i.code, i.stderr)
		}
	}
}

// TestServeWarnsOfALinkThatIsDown, and of an interface that is.
func TestServeWarnsOfALinkThatIsDown(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct {
		up, carrier bool
		want        string // "" for no warning
	}{
		{true, true, ""},
		{false, false, "the interface is down"},
		{true, false, "the link is down"},
	} {
		m := goodMachine()
		m.interfaces = []host.Interface{m.interfaces[1]}
		m.interfaces[0].Name, m.interfaces[0].Up, m.interfaces[0].Carrier = "xr1", c.up, c.carrier
		b.machine = m
		i := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", t.TempDir())
		i.listenPort(t)
		i.cancel()
		i.wait(t)
		if strings.Contains(i.stderr, "is down") != (c.want != "") {
			t.Errorf("%+v: %s", c, i.stderr)
		}
		contains(t, i.stderr, c.want)
	}
}

// TestServeEndsWithItsDevice, and says so by its code.
func TestServeEndsWithItsDevice(t *testing.T) {
	b, _ := simBench(t)
	device := b.kept()
	i := b.start(t, "serve", "-d", "xr1", "--insecure", "--dir", t.TempDir())
	i.listenPort(t)
	if err := device("xr1").Close(); err != nil {
		t.Fatal(err)
	}
	if i.wait(t); i.code != exitFailure {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
}

// TestServeClears what a killed server left, before it waits.
func TestServeClears(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	old := ".xroce-" + strings.Repeat("A", 26) + ".part"
	fresh := ".xroce-" + strings.Repeat("B", 26) + ".part"
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(filepath.Join(dir, old), past, past); err != nil {
		t.Fatal(err)
	}
	serve := []string{"serve", "-d", "xr1", "--insecure", "--dir", dir, "--keep-partial"}
	i := b.start(t, append(serve, "30m")...)
	i.listenPort(t)
	onlyFiles(t, dir, fresh)
	i.cancel()
	contains(t, i.wait(t).stderr, "killed servers left")
	i = b.start(t, append(serve, "0")...)
	i.listenPort(t)
	onlyFiles(t, dir)
	i.cancel()
	contains(t, i.wait(t).stderr, "killed servers left")
}
