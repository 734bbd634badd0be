package transfer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"xroce/engine/msg"
	"xroce/engine/sim"
)

// Two tokens.
var (
	right = Token("the right token of the two ends")
	wrong = Token("another token of the same kind.")
)

func TestTokens(t *testing.T) {
	for name, c := range map[string]struct {
		send, receive Token
		want          string // at the sender, "" for success
	}{
		"same":               {right, right, ""},
		"none":               {nil, nil, ""},
		"another":            {wrong, right, "that of the peer is another one"},
		"the sender's only":  {right, nil, "the server has none"},
		"the server's only":  {nil, right, "--token-file, or XROCE_TOKEN"},
		"none but not empty": {Token{}, right, "that of the peer is another one"},
	} {
		r := newRig(t, 10, sim.Faults{})
		r.token = c.send
		_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{Token: c.receive},
			t.Context(), t.Context())
		if c.want == "" {
			if sendErr != nil || receiveErr != nil {
				t.Errorf("%s: %v, %v", name, sendErr, receiveErr)
			}
			continue
		}
		if sendErr == nil || !strings.Contains(sendErr.Error(), c.want) || receiveErr == nil {
			t.Errorf("%s: %v, %v", name, sendErr, receiveErr)
		}
		r.empty(t)
	}
}

// A tap is a man in the middle, who sees each message and may change it.
type tap struct {
	mu    sync.Mutex
	lines [2][]string // of the client, of the server
}

// data stands for the number of a message that is a chunk.
const data = -1

// relay hands on what one end says until the connection ends. change is given who speaks (0 is
// the client), the number of the message or data, and what it is.
func (p *tap) relay(
	who int, from, to *Link, change func(who, n int, line string) string,
) {
	for n := 0; ; {
		r := &msg.Receive{Buffers: [][]byte{make([]byte, ChunkSize)}, From: from.Conn}
		if from.Endpoint.PostReceive(r) != nil {
			return
		}
		if <-r.Done(); r.Err != nil {
			return
		}
		line, number := string(r.Buffers[0][:r.Length]), data
		if r.Tag == tagControl {
			number = n
			n++
			p.mu.Lock()
			p.lines[who] = append(p.lines[who], line)
			p.mu.Unlock()
		}
		text := change(who, number, line)
		if to.post(&msg.Send{Buffers: [][]byte{[]byte(text)}}, r.Tag) != nil {
			return
		}
		if strings.Contains(line, `"error":`) || strings.Contains(line, `"end"`) {
			return
		}
	}
}

// tapped is a transfer through a tap.
func (r *rig) tapped(
	t *testing.T, p *tap, change func(who, n int, line string) string,
) (sendErr, receiveErr error) {
	t.Helper()
	return r.tappedTo(t, ReceiveConfig{}, p, change)
}

// tappedTo is tapped for a receiver that is to know more than the token.
func (r *rig) tappedTo(
	t *testing.T, receive ReceiveConfig, p *tap, change func(who, n int, line string) string,
) (sendErr, receiveErr error) {
	t.Helper()
	r.token, receive.Token = right, right
	stop := r.listen(t.Context(), receive)
	c := r.client()
	var done sync.WaitGroup
	c.Dial = func(ctx context.Context) (*Link, error) {
		near, left := r.connect(t, client, middle)
		onward, err := r.dial(ctx, middle, server)
		if err != nil {
			return nil, err
		}
		for who, ends := range [][2]*Link{{left, onward}, {onward, left}} {
			done.Go(func() {
				p.relay(who, ends[0], ends[1], change)
				ends[1].Close() // behind what was said last
				ends[0].Close()
			})
		}
		return near, nil
	}
	_, sendErr = c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
	c.Close()
	errs := stop()
	done.Wait()
	return sendErr, errors.Join(errs...)
}

// TestManInTheMiddle: with a token, what is said can be cut off but not changed, and the
// token is not in it.
func TestManInTheMiddle(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	pass := func(_, _ int, line string) string { return line }
	var whole tap
	if sendErr, receiveErr := r.tapped(t, &whole, pass); sendErr != nil || receiveErr != nil {
		t.Fatal(sendErr, receiveErr)
	}
	for _, lines := range whole.lines {
		if strings.Contains(strings.Join(lines, ""), string(right)) {
			t.Error("the token is said")
		}
	}
	if len(whole.lines[0]) != 4 || len(whole.lines[1]) != 3 { // the last is the end
		t.Fatalf("%q", whole.lines)
	}
	r.serve(t, StoreConfig{})
	sendErr, receiveErr := r.tapped(t, new(tap), func(_, n int, line string) string {
		if n == data && line != "" {
			return line[1:] + "x"
		}
		return line
	})
	if sendErr == nil || receiveErr == nil ||
		!strings.Contains(receiveErr.Error(), "SHA-256 differs") {
		t.Errorf("other data: %v, %v", sendErr, receiveErr)
	}
	r.empty(t)
	null := strings.Repeat("0", codeLen)
	for who := range 2 {
		for n := range 3 {
			// One character of what was said the last time, and another one.
			for name, change := range map[string]func(string) string{
				"replayed": func(string) string { return whole.lines[who][n] },
				"changed": func(line string) string {
					at := len(line) - 8 // not in the bits behind a nonce, which mean nothing
					return line[:at] + string(line[at]^1) + line[at+1:]
				},
				"reflected":       func(string) string { return whole.lines[1-who][n] },
				"without a code":  func(l string) string { return l[strings.Index(l, "{"):] },
				"with a null one": func(l string) string { return null + l[codeLen:] },
			} {
				if n == 0 && name == "without a code" {
					continue // the first has none
				}
				r.serve(t, StoreConfig{})
				sendErr, receiveErr := r.tapped(t, new(tap), func(w, m int, line string) string {
					if w == who && m == n {
						return change(line)
					}
					return line
				})
				// The verdict comes when all is done; a false one is an error of the sender.
				if sendErr == nil || receiveErr == nil && (who != 1 || n != 2) {
					t.Errorf("%s, message %d of end %d: %v, %v", name, n, who, sendErr, receiveErr)
				}
			}
		}
	}
}

// TestSeal: no two messages have the same code, whatever is in them, and a code is good
// once, at its place.
func TestSeal(t *testing.T) {
	pair := func(token Token, nonce byte) (sender, receiver *seal) {
		theirs, ours := bytes.Repeat([]byte{nonce}, nonceLen), make([]byte, nonceLen)
		return newSeal(token, true, theirs, ours), newSeal(token, false, theirs, ours)
	}
	known := map[string]bool{}
	for _, token := range []Token{right, wrong} {
		for nonce := range byte(2) {
			sender, receiver := pair(token, nonce)
			for range 3 {
				for _, s := range []*seal{sender, receiver} {
					known[s.code(0, []byte("x"))] = true
				}
			}
		}
	}
	if len(known) != 2*2*2*3 {
		t.Errorf("%d different codes", len(known))
	}
	sender, receiver := pair(right, 1)
	line := []byte(sender.code(0, []byte("x")) + "x")
	for n, want := range []bool{true, false} {
		if text, ok := receiver.open(line); ok != want || string(text) != "x" {
			t.Errorf("time %d: %q, %t", n, text, ok)
		}
	}
	if _, ok := receiver.open(line[:codeLen-1]); ok {
		t.Error("half a code is taken")
	}
}

// TestNoCodesForStrangers: who does not know the token gets nothing from a receiver that
// was made with it, which would help to guess it at leisure.
func TestNoCodesForStrangers(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	from, to := r.connect(t, client, server)
	said := hearAll(from)
	over := r.received(t.Context(), to, ReceiveConfig{Token: right})
	must(t, say(from, strings.TrimSpace(hello)))
	must(t, say(from, strings.Repeat("0", codeLen)+strings.TrimSpace(offer10)))
	err := <-over
	if text := <-said; !errors.Is(err, ErrToken) || !strings.HasPrefix(text, `{"error":"token: `) {
		t.Errorf("%v, %q", err, text)
	}
	r.settled(t, server)
	r.empty(t)
}

func TestReadToken(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		mode    os.FileMode
		want    string // "" for success
	}{
		"good":     {"  0123456789abcdef\n", 0o600, ""},
		"short":    {"0123456789abcde\n", 0o600, "16 to 4096"},
		"empty":    {"", 0o400, "head -c 32"},
		"long":     {strings.Repeat("x", maxToken+1), 0o600, "16 to 4096"},
		"for all":  {"0123456789abcdef\n", 0o644, "chmod 0600"},
		"to write": {"0123456789abcdef\n", 0o620, "chmod 0600"},
	} {
		file := filepath.Join(t.TempDir(), "token")
		err := errors.Join(os.WriteFile(file, []byte(c.content), 0o600), os.Chmod(file, c.mode))
		if err != nil {
			t.Fatal(err)
		}
		token, err := ReadToken(file)
		if c.want == "" && (err != nil || !bytes.Equal(token, []byte("0123456789abcdef"))) ||
			c.want != "" && (!errors.Is(err, ErrToken) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
}
