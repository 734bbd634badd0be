package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
)

// offer is what a sender without a token says until it is admitted: that it has ten
// bytes. It is reached at the server's own address.
const offer = `{"protocol":2,"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}
{"endpoint":"0000:000011:28a720:00000000000000000000ffffc0000201","mtu":3,"name":"x","size":10}
`

// TestServeInterrupted while it receives a file: for a server of one file that is a
// failure, for another one the end, and both say what became of the file.
func TestServeInterrupted(t *testing.T) {
	b, _ := simBench(t)
	for _, c := range []struct {
		once string
		code int
		want string
	}{
		{"--once", exitInterrupted, "xroce: interrupted"},
		{"--once=false", exitOK, "file not received"},
	} {
		dir := t.TempDir()
		server := b.start(t, "serve", c.once, "-d", "xr1", "-p", "0", "--dir", dir)
		conn := dial(t, server.listenPort(t))
		fmt.Fprint(conn, offer)
		answers := bufio.NewReader(conn)
		for _, want := range []string{`"nonce"`, `"rkey"`} {
			if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, want) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		server.cancel()
		if server.wait(t); server.code != c.code {
			t.Errorf("%s: code %d, %s", c.once, server.code, server.stderr)
		}
		contains(t, server.stderr, c.want)
		onlyFiles(t, dir)
	}
}

// testServer makes a server of a new directory, which logs to stderr.
func testServer(t *testing.T, once bool) (s *server, dir string, stderr *bytes.Buffer) {
	t.Helper()
	b, _ := simBench(t)
	dev, err := b.open("xr1", engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	dir = t.TempDir()
	store, err := transfer.OpenStore(dir, transfer.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	stderr = new(bytes.Buffer)
	a := newApp(io.Discard, stderr)
	if a.logFormat = "text"; a.setLogger() != nil {
		t.Fatal("no logger")
	}
	config := transfer.ReceiveConfig{Store: store, GIDIndex: peer.AutoGID}
	return newServer(a, dev, config, once), dir, stderr
}

// TestSenderHangsUp when it has said all, and does not wait for the answer: the file is
// received, and the server does not deny it.
func TestSenderHangsUp(t *testing.T) {
	s, dir, stderr := testServer(t, true)
	from, to := net.Pipe()
	go func() {
		defer from.Close()
		fmt.Fprint(from, strings.Replace(offer, `:10`, `:0`, 1))
		fmt.Fprintf(from, `{"sha256":"%x"}`+"\n", sha256.Sum256(nil))
	}()
	answers := bufio.NewReader(from)
	go func() {
		for range 2 {
			_, _ = answers.ReadString('\n') // what is missing is seen in the log
		}
	}()
	admitted := s.handle(t.Context(), to, s.lobby.Enter(to))
	if !admitted || s.files != 1 || s.err != nil {
		t.Errorf("admitted is %v, %d files, %v", admitted, s.files, s.err)
	}
	onlyFiles(t, dir, "x")
	contains(t, stderr.String(), "file received, and its sender may not know")
}

// TestOnceIsForOne: who waits in the lobby when the one transfer is over does not get
// one of its own before the server has ended.
func TestOnceIsForOne(t *testing.T) {
	s, _, _ := testServer(t, true)
	for n, want := range []string{"no regular end", "the server is busy"} {
		from, to := net.Pipe()
		guest, said := s.lobby.Enter(to), make(chan string)
		go func() {
			fmt.Fprint(from, offer)
			fmt.Fprintln(from, `{"error":"no regular end"}`)
		}()
		go func() {
			text, _ := io.ReadAll(from)
			said <- string(text)
		}()
		admitted := s.handle(t.Context(), to, guest)
		text := <-said
		from.Close()
		if first := n == 0; admitted != first || !first && !strings.Contains(text, want) {
			t.Errorf("guest %d: admitted is %v, told %s", n, admitted, text)
		}
	}
	contains(t, fmt.Sprint(s.err), "no regular end")
}

// A closing listener has errors instead of connections, and then is closed.
type closing struct {
	net.Listener
	errors []error
}

func (c *closing) Accept() (net.Conn, error) {
	if len(c.errors) == 0 {
		return nil, net.ErrClosed
	}
	err := c.errors[0]
	c.errors = c.errors[1:]
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
}

// TestAcceptGoesOn when something was used up for a moment, and not when the listener is
// at fault.
func TestAcceptGoesOn(t *testing.T) {
	s, _, _ := testServer(t, false)
	for err, want := range map[error]error{
		unix.EMFILE: nil, unix.ENFILE: nil, unix.ENOBUFS: nil, unix.ENOMEM: nil,
		unix.ECONNABORTED: nil, unix.EINVAL: unix.EINVAL,
	} {
		var running sync.WaitGroup
		l := &closing{errors: []error{err, err}}
		if got := s.accept(t.Context(), l, &running); !errors.Is(got, want) {
			t.Errorf("after %v: %v", err, got)
		}
	}
}

// TestWhoGivesWay: slow transfers of those whom nobody knows, unless it is the only one.
func TestWhoGivesWay(t *testing.T) {
	for _, c := range []struct {
		once  bool
		token string
		want  int64
	}{
		{false, "", slowTransfer}, {true, "", 0}, {false, "known", 0}, {true, "known", 0},
	} {
		config := transfer.ReceiveConfig{}
		if c.token != "" {
			config.Token = transfer.Token(c.token)
		}
		if got := newServer(nil, nil, config, c.once).lobby.Slow; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
