package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine/msg"
	"xroce/engine/sim"
)

// What a stranger may say, up to a good offer of ten bytes.
const (
	hello   = `{"protocol":3,"nonce":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}` + "\n"
	offer10 = `{"ask":"put","path":"x","name":"x","size":10}` + "\n"
)

// say says something, and waits neither for an answer nor until it was heard.
func say(link *Link, text string) error {
	return link.post(&msg.Send{Buffers: [][]byte{[]byte(text)}}, tagControl)
}

// sayMessage says a message without a code.
func sayMessage(link *Link, m message) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	_ = say(link, string(text)) // who does not listen any more has said why
}

// hearOffer plays a server without a token until the client's offer.
func hearOffer(link *Link) (offer message) {
	// A client that has lost its patience on a busy machine makes no offer, which is
	// for those to judge who wanted one.
	c := newControl(link, patience{})
	_, _ = c.receive(context.Background(), ordinary.exchange)
	sayMessage(link, message{Protocol: protocol, Nonce: newNonce()})
	offer, _ = c.receive(context.Background(), ordinary.exchange)
	return offer
}

// impatient waits just long enough for what does not happen.
var impatient = patience{
	exchange: 50 * time.Millisecond, chunk: 50 * time.Millisecond,
	digest: 50 * time.Millisecond, offer: 50 * time.Millisecond, work: 50 * time.Millisecond,
}

// hearAll hears what the other end says until it gives up or hangs up,
// and returns what it said last.
func hearAll(link *Link) <-chan string {
	last := make(chan string, 1)
	go func() {
		text := ""
		for {
			r := &msg.Receive{Buffers: [][]byte{make([]byte, maxMessage)}}
			if link.expect(r, tagControl) != nil {
				break
			}
			<-r.Done()
			if r.Err != nil {
				break
			}
			text = string(r.Buffers[0][:r.Length])
			if strings.Contains(text, `"error":`) {
				break
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = link.Conn.Close(ended) // at once: nothing is to be heard of us
		last <- text
	}()
	return last
}

// received runs a receiver on a connection, whose error comes when it ends: that of the last
// file, or of the conversation.
func (r *rig) received(
	ctx context.Context, link *Link, c ReceiveConfig,
) <-chan error {
	over := make(chan error, 1)
	c.Store = r.store
	var last error
	c.Ended = func(_ Result, err error) { last = err }
	go func() {
		err := Receive(ctx, link, c)
		link.Close()
		over <- errors.Join(err, last)
	}()
	return over
}

// TestStrangers lets the receiver hear what no sender says. None of them leaves anything at
// the device, and each that listens is told why.
func TestStrangers(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	r.store.free = func(*os.File) (int64, error) { return 1 << 30, nil }
	change := func(from, to string) string { return hello + strings.Replace(offer10, from, to, 1) }
	for name, c := range map[string]struct{ says, want string }{
		"HTTP":           {"GET / HTTP/1.1\r\n", "not a message"},
		"escape codes":   {"\x1b]0;owned\x07\n", "not a message"},
		"null":           {"null\n", "protocol 0"},
		"endless line":   {strings.Repeat("A", maxMessage+1), "a message of 16385 bytes"},
		"no nonce":       {`{"protocol":3}` + "\n", "0 random bytes"},
		"short nonce":    {`{"protocol":3,"nonce":"AAAA"}` + "\n", "3 random bytes"},
		"other version":  {strings.Replace(hello, `:3`, `:99`, 1), "protocol 99"},
		"its own error":  {hello + `{"error":"\u001b[2J"}` + "\n", `\x1b[2J`},
		"nothing":        {hello + "{}\n", `it asks for ""`},
		"something else": {change("put", `\u001b[2J`), `it asks for "\x1b[2J"`},
		"much":           {change("put", strings.Repeat("x", maxMessage/2)), `"xxxxxxxxxxxxxxx`},
		"negative size":  {change(`:10`, `:-2`), "a file of -2 bytes"},
		"largest size":   {change(`:10`, `:9223372036854775807`), "a file of 9223372036854775807"},
		"overflow":       {change(`:10`, `:9223372036854775808`), "not a message"},
		"too large":      {change(`:10`, fmt.Sprintf(":%d", int64(MaxSize)+1)), "is not in 0.."},
		"no space":       {change(`:10`, fmt.Sprintf(":%d", int64(MaxSize))), "no space left"},
		"huge mode":      {change(`:10`, `:10,"mode":4294967296`), "not a message"},
		"deep":           {strings.Repeat("[", maxMessage), "not a message"},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := r.connect(t, client, server)
			said := hearAll(from)
			over := r.received(t.Context(), to, ReceiveConfig{})
			for line := range strings.SplitAfterSeq(c.says, "\n") {
				if line != "" {
					must(t, say(from, line))
				}
			}
			err := <-over
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: no %q", err, c.want)
			} else if len(err.Error()) > maxError {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if text := <-said; !strings.Contains(text, `"error":`) {
				t.Errorf("it is told %q", text)
			}
			r.settled(t, server)
			r.empty(t)
		})
	}
}

// TestSilentSenders are strangers who stop at any step, and stay connected: the receiver
// gives up, and nothing is left.
func TestSilentSenders(t *testing.T) {
	r := newRig(t, 1, sim.Faults{})
	for name, says := range map[string]string{
		"at once":     "",
		"after hello": hello,
		"before data": hello + offer10,
	} {
		t.Run(name, func(t *testing.T) {
			from, to := r.connect(t, client, server)
			said := hearAll(from)
			over := r.received(t.Context(), to, ReceiveConfig{patience: impatient})
			for line := range strings.SplitAfterSeq(says, "\n") {
				if line != "" {
					_ = say(from, line) // which may be too late already
				}
			}
			if err := <-over; !errors.Is(err, peer.ErrSilence) {
				t.Errorf("%v", err)
			}
			<-said
			r.settled(t, server)
			r.empty(t)
		})
	}
}

// TestSilentReceivers are the same for a sender.
func TestSilentReceivers(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	for name, play := range map[string]func(*Link){
		"at once":  func(*Link) {},
		"offered":  func(link *Link) { hearOffer(link) },
		"accepted": func(link *Link) { hearOffer(link); sayMessage(link, message{Path: "x"}) },
	} {
		t.Run(name, func(t *testing.T) { r.sendInVain(t, impatient, play) })
	}
}

// sendInVain sends to a receiver who plays a part and says no more: nothing is sent, and
// nothing is left of it. It returns why.
func (r *rig) sendInVain(t *testing.T, p patience, play func(*Link)) error {
	t.Helper()
	done := r.play(t, func(link *Link) {
		play(link)
		<-hearAll(link)
	})
	c := r.client()
	c.patience = p
	_, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
	c.Close()
	<-done
	if err == nil {
		t.Error("it was sent")
	}
	r.settled(t, client)
	return err
}

// TestHostileAnswers are answers to an offer that no server gives: the client ends with an
// error, and nothing is left.
func TestHostileAnswers(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 10, sim.Faults{})
	for name, c := range map[string]struct {
		answers []message
		want    string
	}{
		"more than all":   {[]message{{Path: "x", Held: 11}}, "it has 11 bytes of 10"},
		"less than none":  {[]message{{Path: "x", Held: -1}}, "it has -1 bytes of 10"},
		"other than said": {[]message{{Path: "x", Held: 5}, {Held: 4}}, "5 bytes, and then 4"},
		"an early word":   {[]message{{Path: "x"}, {}}, "SHA-256 differs"},
		"a false verdict": {[]message{{Path: "x"}, {SHA256: "00"}}, "SHA-256 differs"},
		"an error":        {[]message{{Error: "\x1b[2J"}}, `\x1b[2J`},
	} {
		t.Run(name, func(t *testing.T) {
			err := r.sendInVain(t, patience{}, func(link *Link) {
				hearOffer(link)
				_ = link.expect(&msg.Receive{Buffers: [][]byte{make([]byte, 10)}}, tagData)
				for _, m := range c.answers {
					sayMessage(link, m)
				}
			})
			if !strings.Contains(fmt.Sprint(err), c.want) &&
				!strings.Contains(fmt.Sprint(err), "before it has all") {
				t.Errorf("%v: no %q", err, c.want)
			}
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
		r.settled(t, client)
		r.settled(t, server)
	}
}

// TestTextOfThePeer is spelled out, not obeyed.
func TestTextOfThePeer(t *testing.T) {
	m := message{Error: "\x1b[31m" + strings.Repeat("x", 10_000) + "\n\u202e"}
	text, err := json.Marshal(m)
	must(t, err)
	_, err = new(control).read(text)
	if !errors.Is(err, ErrPeer) || !strings.Contains(err.Error(), `\x1b[31mxxx`) ||
		strings.ContainsAny(err.Error(), "\x1b\n\u202e") || len(err.Error()) > 4<<10 {
		t.Errorf("%q", err)
	}
}

// TestReceiveIsBounded: a peer cannot make us wait by a context that never ends, and who
// waited in vain hears the next message.
func TestReceiveIsBounded(t *testing.T) {
	t.Parallel() // it waits most of the time
	r := newRig(t, 0, sim.Faults{})
	from, to := r.connect(t, client, server)
	defer from.Close()
	defer to.Close()
	c := newControl(to, patience{})
	if _, err := c.receive(t.Context(), time.Millisecond); !errors.Is(err, peer.ErrSilence) {
		t.Error(err)
	}
	sayMessage(from, message{Path: "x"})
	if m, err := c.receive(t.Context(), ordinary.exchange); err != nil || m.Path != "x" {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestMessageInTime: a message that was there when time ran out has come, though the one
// who waits was not scheduled.
func TestMessageInTime(t *testing.T) {
	over := make(chan struct{})
	close(over)
	for range 64 { // a select of two that are ready takes any
		if err := await(t.Context(), over, nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := await(t.Context(), nil, over, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoppedIsNoSilence: who was stopped for longer than it waits looks on for a while, and hears
// what is said then; who is not waits as long as it was told.
func TestStoppedIsNoSilence(t *testing.T) {
	runOut := make(chan time.Time)
	close(runOut)
	const most = time.Second - 8 // what is left of a second is told as one
	for _, says := range []bool{true, false} {
		over, looks, waited := make(chan struct{}), 0, time.Duration(0)
		err := awaitBy(t.Context(), over, nil, most, func(d time.Duration) <-chan time.Time {
			waited += d
			if looks++; says && looks == awaitParts/2 {
				close(over)
			}
			return runOut
		})
		switch {
		case says && err != nil:
			t.Errorf("it does not hear what is said: %v", err)
		case !says && (!errors.Is(err, peer.ErrSilence) || waited != most ||
			!strings.HasSuffix(err.Error(), " for 1s")):
			t.Errorf("after %v: %v", waited, err)
		}
	}
}
