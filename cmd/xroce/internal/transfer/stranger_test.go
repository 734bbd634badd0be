package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/sim"
)

// Lines that a stranger may say, up to a good offer of ten bytes.
const (
	hello    = `{"protocol":2,"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}` + "\n"
	endpoint = "0000:000011:28a720:00000000000000000000ffffc0000201"
	offer10  = `{"endpoint":"` + endpoint + `","mtu":3,"path":"x","name":"x","size":10}` + "\n"
)

// say writes a message.
func say(conn net.Conn, m message) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	_, _ = conn.Write(append(text, '\n')) // who does not listen any more has said why
}

// hearOffer plays a receiver without a token until the sender's offer.
func hearOffer(conn net.Conn) (offer message) {
	// A sender that has lost its patience on a busy machine makes no offer, which is
	// for those to judge who wanted one.
	c := newControl(conn)
	_, _ = c.receive()
	say(conn, message{Protocol: protocol, Nonce: newNonce()})
	offer, _ = c.receive()
	return offer
}

// accept is what a good receiver answers to an offer.
func accept(offer message) message {
	return message{
		Endpoint: strings.Replace(endpoint, "0201", "0202", 1), Path: "x", MTU: offer.MTU,
		Addr: 1, RKey: 1, ChunkSize: ChunkSize, Slots: Slots,
	}
}

// count is how many objects a device has.
func count(d *engine.Device) engine.ResourceCount { return d.Resources(0).Total }

// impatient waits just long enough for what does not happen.
var impatient = patience{
	exchange: 50 * time.Millisecond, chunk: 50 * time.Millisecond,
	digest: 50 * time.Millisecond, verdict: 50 * time.Millisecond,
}

// hearAll reads what a receiver says, so that it does not wait for us, until it hangs up,
// and returns what it said last.
func hearAll(conn net.Conn) <-chan string {
	last := make(chan string, 1)
	go func() {
		text := ""
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			text = lines.Text()
		}
		last <- text
	}()
	return last
}

// TestStrangers lets the receiver hear what no sender says. None of them costs the
// device anything, and each that listens is told why.
func TestStrangers(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	r.store.free = func(*os.File) (int64, error) { return 1 << 30, nil }
	change := func(from, to string) string { return hello + strings.Replace(offer10, from, to, 1) }
	for name, c := range map[string]struct{ says, want string }{
		"HTTP":          {"GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "not a message"},
		"escape codes":  {"\x1b]0;owned\x07\n", "not a message"},
		"null":          {"null\n", "protocol 0"},
		"endless line":  {strings.Repeat("A", controlLimit*2), "closed"},
		"no nonce":      {`{"protocol":2}` + "\n", "0 random bytes"},
		"short nonce":   {`{"protocol":2,"nonce":"AAAA"}` + "\n", "3 random bytes"},
		"other version": {strings.Replace(hello, `:2`, `:99`, 1), "protocol 99"},
		"its own error": {hello + `{"error":"\u001b[2J"}` + "\n", `\x1b[2J`},
		"no endpoint":   {change(endpoint, ""), "not a connection message"},
		"no GID":        {change("ffffc0000201", "000000000000"), "no GID"},
		"endless":       {change(endpoint, strings.Repeat("0", controlLimit/2)), "not a conn"},
		"a group":       {change("c0000201", "ef010101"), "group"},
		"no MTU":        {change(`"mtu":3`, `"mtu":0`), "path MTU"},
		"huge MTU":      {change(`"mtu":3`, `"mtu":4000000000`), "not a message"},
		"negative size": {change(`:10`, `:-1`), "a file of -1 bytes"},
		"largest size":  {change(`:10`, `:9223372036854775807`), "a file of 9223372036854775807"},
		"overflow":      {change(`:10`, `:9223372036854775808`), "not a message"},
		"too large":     {change(`:10`, fmt.Sprintf(":%d", int64(MaxSize)+1)), "is not in 0.."},
		"no space":      {change(`:10`, fmt.Sprintf(":%d", int64(MaxSize))), "no space left"},
		"deep":          {strings.Repeat("[", 20_000) + "\n", "not a message"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := net.Pipe()
			defer from.Close()
			said := hearAll(from)
			go func() { _, _ = from.Write([]byte(c.says)) }()
			_, err := Receive(t.Context(), r.dev[1], to, ReceiveConfig{
				Store: r.store, GIDIndex: peer.AutoGID,
			})
			to.Close()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: no %q", err, c.want)
			} else if len(err.Error()) > maxError {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if text := <-said; !strings.Contains(text, `"error":`) {
				t.Errorf("it is told %q", text)
			}
			if got := count(r.dev[1]); got != (engine.ResourceCount{}) {
				t.Errorf("left at the device: %+v", got)
			}
			r.empty(t)
		})
	}
}

// TestSilentSenders are strangers who stop at any step, and stay connected: the receiver
// gives up, and nothing is left.
func TestSilentSenders(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	for name, says := range map[string]string{
		"at once":        "",
		"in a line":      hello[:20],
		"after hello":    hello,
		"before data":    hello + offer10,
		"before finish":  hello + strings.Replace(offer10, `:10`, `:0`, 1),
		"in a last line": hello + strings.Replace(offer10, `:10`, `:0`, 1) + `{"sha256":"`,
	} {
		t.Run(name, func(t *testing.T) {
			from, to := net.Pipe()
			defer from.Close()
			said := hearAll(from)
			go func() { _, _ = from.Write([]byte(says)) }()
			_, err := Receive(t.Context(), r.dev[1], to, ReceiveConfig{
				Store: r.store, GIDIndex: peer.AutoGID, patience: impatient,
			})
			to.Close()
			<-said
			if err == nil {
				t.Error("it was received")
			}
			if got := count(r.dev[1]); got != (engine.ResourceCount{}) {
				t.Errorf("left at the device: %+v", got)
			}
			r.empty(t)
		})
	}
}

// TestSilentReceivers are the same for a sender.
func TestSilentReceivers(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	for name, play := range map[string]func(net.Conn){
		"at once": func(net.Conn) {},
		"offered": func(conn net.Conn) { hearOffer(conn) },
		"accepted": func(conn net.Conn) {
			say(conn, accept(hearOffer(conn)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.sendInVain(t, play)
		})
	}
}

// sendInVain sends to a receiver who plays a part and says no more: nothing is sent, and
// nothing is left of it.
func (r *rig) sendInVain(t *testing.T, play func(conn net.Conn)) {
	t.Helper()
	from, to := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		play(to)
		<-hearAll(to)
	}()
	_, err := Send(t.Context(), r.dev[0], from, SendConfig{
		File: r.file, Path: "x", GIDIndex: peer.AutoGID, patience: impatient,
	})
	from.Close()
	<-done
	if err == nil {
		t.Error("it was sent")
	}
	if got := count(r.dev[0]); got != (engine.ResourceCount{}) {
		t.Errorf("left at the device: %+v", got)
	}
}

// TestGreedyReceivers want more of the sender's memory than a few megabytes, and are
// told how much there is.
func TestGreedyReceivers(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	for _, c := range []struct{ chunk, slots int }{
		{16 << 20, 64},
		{maxWindow + 1, 1},
		{maxWindow / 2, 3},
		{1, maxSlots + 1},
		{0, 1},
		{1, 0},
		{-1, -1},
		{1 << 62, 4},
		{-1 << 63, 1},
	} {
		from, to := net.Pipe()
		said := make(chan string, 1)
		go func() {
			m := accept(hearOffer(to))
			m.ChunkSize, m.Slots = c.chunk, c.slots
			say(to, m)
			said <- <-hearAll(to)
		}()
		_, err := Send(t.Context(), r.dev[0], from, SendConfig{
			File: r.file, Path: "x", GIDIndex: peer.AutoGID,
		})
		from.Close()
		bound := fmt.Sprintf("at most %d slots and %d bytes", maxSlots, maxWindow)
		if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), bound) {
			t.Errorf("%+v: %v", c, err)
		}
		if text := <-said; !strings.Contains(text, bound) {
			t.Errorf("%+v: the receiver is told %q", c, text)
		}
	}
}

// TestHostileAccepts are answers to an offer that no receiver gives: the sender ends with
// an error, and nothing is left.
func TestHostileAccepts(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	swap := func(m *message, from, to string) {
		m.Endpoint = strings.Replace(endpoint, from, to, 1)
	}
	for name, change := range map[string]func(*message){
		"no MTU":        func(m *message) { m.MTU = 0 },
		"strange MTU":   func(m *message) { m.MTU = 99 },
		"no endpoint":   func(m *message) { m.Endpoint = "" },
		"no GID":        func(m *message) { m.Endpoint = endpoint[:19] + strings.Repeat("0", 32) },
		"long one":      func(m *message) { m.Endpoint += "0" },
		"reserved QPN":  func(m *message) { swap(m, "11:", "01:") },
		"nobody there":  func(m *message) { swap(m, "0201", "0299") },
		"a group":       func(m *message) { swap(m, "c0000201", "ef010101") },
		"end of memory": func(m *message) { m.Addr, m.RKey = 1<<64-1, 1<<32-1 },
		"an offer":      func(m *message) { *m = message{Size: 10, Name: "x"} },
		"a verdict":     func(m *message) { *m = message{SHA256: "00"} },
		"nothing":       func(m *message) { *m = message{} },
	} {
		t.Run(name, func(t *testing.T) {
			r.sendInVain(t, func(conn net.Conn) {
				m := accept(hearOffer(conn))
				change(&m)
				say(conn, m)
			})
		})
	}
}

// TestNothingIsLeft counts the objects of both devices before and after transfers that
// succeed and that fail, however they do.
func TestNothingIsLeft(t *testing.T) {
	for name, receive := range map[string]ReceiveConfig{
		"success":  {},
		"refused":  {Admit: func() error { return ErrBusy }},
		"no token": {Token: Token(strings.Repeat("t", MinToken))},
	} {
		r := newRig(t, ChunkSize+1, sim.Faults{})
		for range 3 {
			r.serve(t, StoreConfig{})
			_, sendErr, receiveErr := r.run(t, SendConfig{Path: "x"}, receive, t.Context(),
				t.Context())
			if ok := name == "success"; ok != (sendErr == nil) || ok != (receiveErr == nil) {
				t.Errorf("%s: %v, %v", name, sendErr, receiveErr)
			}
		}
		for n, d := range r.dev {
			if got := count(d); got != (engine.ResourceCount{}) {
				t.Errorf("%s: left at device %d: %+v", name, n, got)
			}
		}
	}
}

// TestTextOfThePeer is spelled out, not obeyed.
func TestTextOfThePeer(t *testing.T) {
	from, to := net.Pipe()
	go say(from, message{Error: "\x1b[31m" + strings.Repeat("x", 10_000) + "\n\u202e"})
	_, err := newControl(to).receive()
	if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), `\x1b[31mxxx`) ||
		strings.ContainsAny(err.Error(), "\x1b\n\u202e") || len(err.Error()) > 4<<10 {
		t.Errorf("%q", err)
	}
}

// TestSecondReceiveIsBounded: a peer cannot make us wait by a context that never ends.
func TestSecondReceiveIsBounded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	from, to := net.Pipe()
	defer from.Close()
	h := newControl(to).hear(cancel)
	defer h.stop()
	if _, err := h.wait(ctx, time.Millisecond); !errors.Is(err, peer.ErrSilence) {
		t.Error(err)
	}
}

// TestMessageInTime: a message that was there when time ran out has come, though the one
// who waits was not scheduled.
func TestMessageInTime(t *testing.T) {
	for range 64 { // a select of two that are ready takes any
		h := &hearing{message: make(chan message, 1)}
		h.message <- message{Path: "x"}
		if m, err := h.wait(t.Context(), 0); err != nil || m.Path != "x" {
			t.Fatalf("%+v, %v", m, err)
		}
	}
}
