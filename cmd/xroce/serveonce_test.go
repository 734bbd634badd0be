package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine/cm"
	"xroce/roce"
)

// What a sender without a token says until it is admitted: that it has ten bytes.
var offer = []string{
	`{"protocol":3,"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`,
	`{"ask":"put","name":"x","size":10}`,
}

// offers makes an offer, and returns the answer.
func offers(t *testing.T, link *transfer.Link, size int) (answer string) {
	t.Helper()
	for _, text := range offer {
		say(t, link, strings.Replace(text, ":10", fmt.Sprint(":", size), 1))
		answer = hear(link)
	}
	return answer
}

// TestServeInterrupted while it receives a file: for a server of one file that is a
// failure, for another one the end, and both say what became of the file.
func TestServeInterrupted(t *testing.T) {
	b, _ := simBench(t)
	for n, c := range []struct {
		once string
		code int
		want string
	}{
		{"--once", exitInterrupted, "xroce: interrupted"},
		{"--once=false", exitOK, "file not received"},
	} {
		dir := t.TempDir()
		server := b.start(t, "serve", c.once, "-d", "xr1", "--insecure", "--dir", dir)
		server.listenPort(t)
		link := b.dial(t, fmt.Sprint("xr", 8+n))
		if answer := offers(t, link, 10); !strings.Contains(answer, `"path":"x"`) {
			t.Fatalf("%q", answer)
		}
		server.cancel()
		if answer := hear(link); !strings.Contains(answer, `"again":true`) {
			t.Errorf("%s: it is told %q", c.once, answer)
		}
		link.Close()
		if server.wait(t); server.code != c.code {
			t.Errorf("%s: code %d, %s", c.once, server.code, server.stderr)
		}
		contains(t, server.stderr, c.want)
		onlyFiles(t, dir)
	}
}

// TestSenderHangsUp when it has said all, and does not wait for the answer, or does not say that it
// needs nothing more: the file is received, and the server does not deny it.
func TestSenderHangsUp(t *testing.T) {
	t.Parallel()
	b, _ := simBench(t)
	for n, c := range []struct {
		once  string
		hears bool
	}{{"--once", false}, {"--once", true}, {"--once=false", false}, {"--once=false", true}} {
		dir := t.TempDir()
		server := b.start(t, "serve", c.once, "-d", "xr1", "--insecure", "--dir", dir)
		server.listenPort(t)
		link := b.dial(t, fmt.Sprint("xr", 6+n))
		offers(t, link, 0)
		if err := link.Conn.PostSend(chunk(nil)); err != nil {
			t.Fatal(err)
		}
		say(t, link, fmt.Sprintf(`{"sha256":"%x"}`, sha256.Sum256(nil)))
		if c.hears {
			if verdict := hear(link); !strings.Contains(verdict, `"sha256"`) {
				t.Fatalf("%q", verdict)
			}
		}
		link.Close()
		if server.awaitStdout(t, "received x from 192.0.2."); c.once != "--once" {
			if c.hears {
				server.awaitStderr(t, "the connection ended between files")
			}
			server.cancel()
		}
		server.wait(t)
		if server.code != exitOK || strings.Contains(server.stderr, "file not received") {
			t.Errorf("%+v: code %d, %s", c, server.code, server.stderr)
		}
		if n := strings.Count(server.stdout, "received x from"); n != 1 {
			t.Errorf("%+v: received %d times: %s", c, n, server.stdout)
		}
		if c.hears {
			contains(t, server.stderr, "the connection ended between files")
		}
		onlyFiles(t, dir, "x")
	}
}

// TestInterruptedBetweenFiles: a server of one connection that is told to end while its client may
// have more is interrupted; for another one that is the end, and no failure.
func TestInterruptedBetweenFiles(t *testing.T) {
	b, _ := simBench(t)
	for n, c := range []struct {
		once string
		code int
	}{{"--once", exitInterrupted}, {"--once=false", exitOK}} {
		server := b.start(t, "serve", c.once, "-d", "xr1", "--insecure", "--dir", t.TempDir())
		server.listenPort(t)
		link := b.dial(t, fmt.Sprint("xr", 8+n))
		offers(t, link, 0)
		if err := link.Conn.PostSend(chunk(nil)); err != nil {
			t.Fatal(err)
		}
		say(t, link, fmt.Sprintf(`{"sha256":"%x"}`, sha256.Sum256(nil)))
		hear(link)
		server.cancel()
		link.Close()
		server.wait(t)
		if server.code != c.code || strings.Contains(server.stderr, "file not received") {
			t.Errorf("%s: code %d, %s", c.once, server.code, server.stderr)
		}
		contains(t, server.stdout, "received x from")
	}
}

// TestOnceIsForOne: who comes when the one connection is over does not get a transfer of its own
// before the server has ended.
func TestOnceIsForOne(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	server := b.start(t, "serve", "--once", "-d", "xr1", "--insecure", "--dir", dir)
	server.listenPort(t)
	first, second := b.dial(t, "xr8"), b.dial(t, "xr9")
	if answer := offers(t, first, 10); !strings.Contains(answer, `"path":"x"`) {
		t.Fatalf("%q", answer)
	}
	if answer := offers(t, second, 10); !strings.Contains(answer, "the server is busy") {
		t.Errorf("the second is told %q", answer)
	}
	second.Close()
	say(t, first, `{"error":"no regular end"}`)
	first.Close()
	if server.wait(t); server.code != exitFailure {
		t.Errorf("code %d, %s", server.code, server.stderr)
	}
	contains(t, server.stderr, "no regular end")
	onlyFiles(t, dir)
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

// TestServeOnceLosesItsClient: a server that is there for one client loses it while its disk brings
// a file there. That file is received, and the client may have had more, so this is no success, as
// it is none a moment later (TestServeOnceIsCutOff). Where the client hangs up, it is one.
func TestServeOnceLosesItsClient(t *testing.T) {
	b, _ := simBench(t)
	station := b.station(t, "xr1")
	for _, c := range []struct {
		why  error
		code int
	}{
		{&roce.WorkError{Status: roce.StatusRetryExcErr}, exitFailure},
		{cm.ErrHungUp, exitOK},
	} {
		a := newApp(io.Discard, io.Discard)
		a.logger = slog.New(slog.DiscardHandler)
		s := newServer(a, station, transfer.ReceiveConfig{}, true)
		// As transfer.Receive does when the verdict cannot be said.
		s.ended("192.0.2.2", transfer.Result{Path: "x", Size: 10},
			fmt.Errorf("x is received, and its sender was not told: %w", c.why))
		if code := exitCode(t.Context(), s.err, true); code != c.code || s.files != 1 {
			t.Errorf("%v: code %d, %d files", c.why, code, s.files)
		}
	}
}
