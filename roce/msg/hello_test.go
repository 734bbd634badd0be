package msg_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/msg"
)

// goldenHello is hello as it stands in private data.
const goldenHello = "786d7367 02 01 000d 0004 03 02 00000400 0040 0010 " +
	"000102030405060708090a0b0c0d0e0f 00000080 1122334455667788 0a 02 000000000000"

var hello = msg.Hello{
	Version: 2, MinVersion: 1,
	Capabilities: msg.CapabilityGet | msg.CapabilityProvision | msg.CapabilityRails,
	Required:     msg.CapabilityProvision, Rail: 3, Service: msg.ServiceEndpoint,
	Payload: 1024, Slots: 64, Rendezvous: 16,
	Session:  msg.Token{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	Receives: 128, Incarnation: 0x1122334455667788, Status: msg.StatusBusy, Rails: 2,
}

func TestHelloGolden(t *testing.T) {
	want := unhex(t, goldenHello)
	b := bytes.Repeat([]byte{0xa5}, 196)
	hello.Put(b)
	if !bytes.Equal(b[:msg.HelloLen], want) {
		t.Errorf("hello is %x, want %x", b[:msg.HelloLen], want)
	}
	if !bytes.Equal(b[msg.HelloLen:], bytes.Repeat([]byte{0xa5}, 140)) {
		t.Error("Put wrote behind the hello")
	}
	const text = "HELLO version=1..2 capabilities=0x000d required=0x0004 rail=3 service=2 " +
		"payload=1024 slots=64 rendezvous=16 receives=128 incarnation=0x1122334455667788 " +
		"status=busy rails=2"
	if got := hello.String(); got != text {
		t.Errorf("hello prints as\n%s, want\n%s", got, text)
	}
}

// TestHelloInLongerPrivateData: a REP and a REJ have more private data than a hello has.
func TestHelloInLongerPrivateData(t *testing.T) {
	for _, n := range []int{56, 92, 148, 196} {
		private := make([]byte, n)
		copy(private, unhex(t, goldenHello))
		if got, err := msg.ParseHello(private); err != nil || got != hello {
			t.Errorf("of %d bytes: %v, %v", n, &got, err)
		}
	}
}

func TestHelloTruncated(t *testing.T) {
	b := unhex(t, goldenHello)
	for n := range b {
		if _, err := msg.ParseHello(b[:n:n]); !errors.Is(err, msg.ErrNotHello) {
			t.Errorf("of %d bytes: %v", n, err)
		}
	}
}

// TestHelloBits: any other magic is no hello, reserved bits are ignored, all others count.
func TestHelloBits(t *testing.T) {
	for i := range msg.HelloLen * 8 {
		b := unhex(t, goldenHello)
		b[i/8] ^= 0x80 >> (i % 8)
		got, err := msg.ParseHello(b)
		switch {
		case i < 32:
			if !errors.Is(err, msg.ErrNotHello) {
				t.Errorf("bit %d: %v", i, err)
			}
		case err != nil:
			t.Errorf("bit %d: %v", i, err)
		case (got == hello) != (i >= 50*8):
			t.Errorf("bit %d: %v", i, &got)
		}
	}
}

func TestAgree(t *testing.T) {
	const get, put, unknown = msg.CapabilityGet, msg.CapabilityPut, msg.Capabilities(1 << 15)
	type h = msg.Hello
	one := h{Version: 1, MinVersion: 1, Service: msg.ServiceChannel}
	with := func(change func(*h)) h {
		c := one
		change(&c)
		return c
	}
	for _, c := range []struct {
		name         string
		ours, theirs h
		want         msg.Agreement
		err          error
	}{
		{"the same", one, one, msg.Agreement{Version: 1}, nil},
		{
			"the lower of both versions", one, with(func(c *h) { c.Version = 9 }),
			msg.Agreement{Version: 1},
			nil,
		},
		{
			"a later version only", one, with(func(c *h) { c.Version, c.MinVersion = 2, 2 }),
			msg.Agreement{},
			msg.ErrVersion,
		},
		{"no version", one, with(func(c *h) { c.Version = 0 }), msg.Agreement{}, msg.ErrVersion},
		{
			"least above most", one, with(func(c *h) { c.MinVersion = 2 }),
			msg.Agreement{},
			msg.ErrVersion,
		},
		{
			"capabilities of both", with(func(c *h) { c.Capabilities = get | put }),
			with(func(c *h) { c.Capabilities = put | unknown }),
			msg.Agreement{Version: 1, Capabilities: put},
			nil,
		},
		{
			"required and there", with(func(c *h) { c.Capabilities = get | put }),
			with(func(c *h) { c.Required = put }),
			msg.Agreement{Version: 1},
			nil,
		},
		{
			"required and not there", with(func(c *h) { c.Capabilities = get }),
			with(func(c *h) { c.Required = put }),
			msg.Agreement{},
			msg.ErrCapability,
		},
		{
			"required and unknown", with(func(c *h) { c.Capabilities = get | put }),
			with(func(c *h) { c.Required = unknown }),
			msg.Agreement{},
			msg.ErrCapability,
		},
		{
			"another service", one, with(func(c *h) { c.Service = msg.ServiceStream }),
			msg.Agreement{},
			msg.ErrService,
		},
		{
			"the version first", one,
			h{Version: 2, MinVersion: 2, Required: 1},
			msg.Agreement{},
			msg.ErrVersion,
		},
	} {
		for range 2 {
			if got, err := msg.Agree(&c.ours, &c.theirs); got != c.want || !errors.Is(err, c.err) {
				t.Errorf("%s: %v, %v; want %v, %v", c.name, got, err, c.want, c.err)
			}
			c.ours, c.theirs = c.theirs, c.ours
		}
	}
}

func drawHello(t *rapid.T) msg.Hello {
	return msg.Hello{
		Version: rapid.Uint8().Draw(t, "version"), MinVersion: rapid.Uint8().Draw(t, "least"),
		Capabilities: msg.Capabilities(rapid.Uint16().Draw(t, "capabilities")),
		Required:     msg.Capabilities(rapid.Uint16().Draw(t, "required")),
		Rail:         rapid.Uint8().Draw(t, "rail"),
		Service:      msg.Service(rapid.Uint8().Draw(t, "service")),
		Payload:      rapid.Uint32().Draw(t, "payload"), Slots: rapid.Uint16().Draw(t, "slots"),
		Rendezvous:  rapid.Uint16().Draw(t, "rendezvous"),
		Session:     msg.Token(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "session")),
		Receives:    rapid.Uint32().Draw(t, "receives"),
		Incarnation: rapid.Uint64().Draw(t, "incarnation"),
		Status:      msg.Status(rapid.Uint8().Draw(t, "status")),
	}
}

func TestHelloRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHello(t)
		b := bytes.Repeat([]byte{0xa5}, msg.HelloLen)
		h.Put(b)
		if got, err := msg.ParseHello(b); err != nil || got != h {
			t.Fatalf("%v becomes %v, %v", &h, &got, err)
		}
	})
}

// TestHelloKeepsTheSession: who reads what is printed must not be able to join it.
func TestHelloKeepsTheSession(t *testing.T) {
	if text := hello.String(); strings.Contains(text, "0e0f") || strings.Contains(text, "14 15") {
		t.Errorf("%s tells the session", text)
	}
}

// FuzzHello: private data is refused, or what was read of it is all that it says.
func FuzzHello(f *testing.F) {
	f.Add(unhex(f, goldenHello))
	f.Add(append(unhex(f, goldenHello), make([]byte, 140)...))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, private []byte) {
		h, err := msg.ParseHello(private)
		if err != nil {
			if h != (msg.Hello{}) {
				t.Fatalf("%v with %v", &h, err)
			}
			return
		}
		b := make([]byte, msg.HelloLen)
		h.Put(b)
		if !bytes.Equal(b[:49], private[:49]) {
			t.Fatalf("%x becomes %x", private, b)
		}
		a, err1 := msg.Agree(&h, &hello)
		b1, err2 := msg.Agree(&hello, &h)
		if a != b1 || !errors.Is(err1, err2) {
			t.Fatalf("one end agrees to %v, %v, the other to %v, %v", a, err1, b1, err2)
		}
	})
}
