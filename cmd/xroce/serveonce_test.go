package main

import (
	"bufio"
	"bytes"
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

// TestOnceIsForOne: who waits in the lobby when the one transfer is over does not get
// one of its own before the server has ended.
func TestOnceIsForOne(t *testing.T) {
	b, _ := simBench(t)
	dev, err := b.open("xr1", engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	store, err := transfer.OpenStore(t.TempDir(), transfer.StoreConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var stdout, stderr bytes.Buffer
	a := newApp(&stdout, &stderr)
	if a.logFormat = "text"; a.setLogger() != nil {
		t.Fatal("no logger")
	}
	config := transfer.ReceiveConfig{Store: store, GIDIndex: peer.AutoGID}
	s := newServer(a, dev, config, true)
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
	b, _ := simBench(t)
	dev, err := b.open("xr1", engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	s := newServer(newApp(io.Discard, io.Discard), dev, transfer.ReceiveConfig{}, false)
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
