package transfer

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
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
		_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x", Token: c.send},
			ReceiveConfig{Token: c.receive}, t.Context(), t.Context())
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

// A tap is a man in the middle, who sees each line and may change it.
type tap struct {
	mu    sync.Mutex
	lines [2][]string // of the sender, of the receiver
}

// between joins two connections by the tap. change is given who speaks (0 is the
// sender), the number of the line, and the line.
func (p *tap) between(
	from, to net.Conn, change func(who, n int, line string) string,
) (done *sync.WaitGroup) {
	done = new(sync.WaitGroup)
	for who, ends := range [][2]net.Conn{{from, to}, {to, from}} {
		done.Go(func() {
			defer ends[1].Close()
			in := newControl(ends[0]).in
			for n := 0; ; n++ {
				line, err := in.ReadString('\n')
				if err != nil {
					return
				}
				p.mu.Lock()
				p.lines[who] = append(p.lines[who], line)
				p.mu.Unlock()
				if _, err := io.WriteString(ends[1], change(who, n, line)); err != nil {
					return
				}
			}
		})
	}
	return done
}

// tapped is a transfer through a tap.
func (r *rig) tapped(
	t *testing.T, p *tap, change func(who, n int, line string) string,
) (sendErr, receiveErr error) {
	t.Helper()
	sender, left := net.Pipe()
	right2, receiver := net.Pipe()
	done := p.between(left, right2, change)
	done.Go(func() {
		_, receiveErr = Receive(t.Context(), r.dev[1], receiver, ReceiveConfig{
			Store: r.store, Token: right, GIDIndex: peer.AutoGID,
		})
		receiver.Close()
	})
	_, sendErr = Send(t.Context(), r.dev[0], sender, SendConfig{
		File: r.file, Path: "x", Token: right, GIDIndex: peer.AutoGID,
	})
	sender.Close()
	done.Wait()
	return sendErr, receiveErr
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
	if len(whole.lines[0]) != 3 || len(whole.lines[1]) != 3 {
		t.Fatalf("%q", whole.lines)
	}
	null := strings.Repeat("0", codeLen)
	for who := range 2 {
		for n := range 3 {
			// One character of what was said the last time, and another one.
			for name, change := range map[string]func(string) string{
				"replayed": func(string) string { return whole.lines[who][n] },
				"changed": func(line string) string {
					at := len(line) - 4
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
	from, to := net.Pipe()
	defer from.Close()
	said := hearAll(from)
	go func() { _, _ = from.Write([]byte(hello + strings.Repeat("0", codeLen) + offer10)) }()
	_, err := Receive(t.Context(), r.dev[1], to, ReceiveConfig{
		Store: r.store, Token: right, GIDIndex: peer.AutoGID,
	})
	to.Close()
	if text := <-said; !errors.Is(err, ErrToken) || !strings.HasPrefix(text, `{"error":"token: `) {
		t.Errorf("%v, %q", err, text)
	}
	if got := count(r.dev[1]); got != (engine.ResourceCount{}) {
		t.Errorf("left at the device: %+v", got)
	}
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
