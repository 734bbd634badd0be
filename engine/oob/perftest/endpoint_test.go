package perftest

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/wire"
)

var sample = Endpoint{
	OutReads: 0x80, QPN: 0x11, PSN: 0xc6f52d, RKey: 0x20d, VAddr: 0x7efde9147000,
	GID: wire.GIDFromIPv4([4]byte{192, 168, 77, 3}),
}

const sampleText = "0000:0080:000011:c6f52d:0000020d:00007efde9147000:" +
	"00:00:00:00:00:00:00:00:00:00:ff:ff:c0:a8:4d:03:00000000:"

func TestEndpointText(t *testing.T) {
	if got := string(sample.AppendText(nil)); got != sampleText {
		t.Errorf("message %q", got)
	}
	if got, err := ParseEndpoint(sampleText); err != nil || got != sample {
		t.Errorf("read back %+v, %v", got, err)
	}
}

func TestParseEndpointRefuses(t *testing.T) {
	for _, text := range []string{
		"", sampleText[1:], sampleText + ":", strings.Replace(sampleText, ":", "-", 1),
		strings.Replace(sampleText, "ff", "fx", 1),
		strings.Replace(sampleText, "0000:0080", "00000:080", 1),
		strings.Replace(sampleText, "c0:a8", "c0a:8", 1),
		strings.Replace(sampleText, ":00000000:", ":0000000-:", 1),
		strings.Replace(sampleText, "0000:", "+000:", 1),
	} {
		if e, err := ParseEndpoint(text); !errors.Is(err, ErrMessage) {
			t.Errorf("%q: parsed as %+v, %v", text, e, err)
		}
	}
}

// TestEndpointOfAGroup: a receiver of the tool that is a member of a group tells it as its address
// (perftest, set_up_connection), which is taken from it if it is the group of the user.
func TestEndpointOfAGroup(t *testing.T) {
	member := sample
	member.QPN, member.GID = wire.MulticastQP, wire.GIDFromIPv4([4]byte{239, 1, 2, 3})
	text := string(member.AppendText(nil))
	if got, err := parseEndpoint(text, member.GID); err != nil || got != member {
		t.Errorf("%+v, %v", got, err)
	}
	other := wire.GIDFromIPv4([4]byte{239, 1, 2, 4})
	for _, group := range []wire.GID{{}, other} {
		if _, err := parseEndpoint(text, group); !errors.Is(err, ErrMessage) {
			t.Errorf("with %s: %v", group, err)
		}
	}
}

func TestEndpointsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Endpoint{
			LID: rapid.Uint16().Draw(t, "lid"), OutReads: rapid.Uint16().Draw(t, "out"),
			QPN:  rapid.Uint32Max(1<<24-1).Draw(t, "qpn"),
			PSN:  wire.PSN(rapid.Uint32Max(1<<24-1).Draw(t, "psn")),
			RKey: rapid.Uint32().Draw(t, "rkey"), VAddr: rapid.Uint64().Draw(t, "vaddr"),
			SRQN: rapid.Uint32().Draw(t, "srqn"),
		}
		copy(e.GID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "gid"))
		got, err := ParseEndpoint(string(e.AppendText(nil)))
		if e.GID.IsMulticast() {
			if !errors.Is(err, ErrMessage) {
				t.Errorf("a group, %s: %v", e.GID, err)
			}
		} else if err != nil || got != e {
			t.Errorf("%+v became %+v, %v", e, got, err)
		}
	})
}

func FuzzParseEndpoint(f *testing.F) {
	f.Add(sampleText)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEndpoint(text)
		if err != nil {
			return
		}
		if again, err := ParseEndpoint(string(e.AppendText(nil))); err != nil || again != e {
			t.Errorf("%q: %+v does not survive: %+v, %v", text, e, again, err)
		}
	})
}

// FuzzSetup feeds all that a hostile peer may say before the first key.
func FuzzSetup(f *testing.F) {
	f.Add(pad("6.06", 16) + "\x00\x00\x10\x00\x00\x00\x00@3\x00" + sampleText + "\x00")
	f.Fuzz(func(t *testing.T, text string) {
		_ = hear(text, func(c *Conn) error {
			if v, _, err := c.Versions(OurVersion, true); err == nil && len(v) > 15 {
				t.Errorf("version %q", v)
			}
			if s, err := c.System(System{4096, 64}); err == nil &&
				(s.Cycle < 4096 || s.Cycle > maxCycle || s.CacheLine < 64) {
				t.Errorf("%+v", s)
			}
			if m, err := c.MTU(wire.MTU4096); err == nil && (m < 1 || m > 5) {
				t.Errorf("MTU %d", m)
			}
			if e, err := c.Keys(Endpoint{}); err == nil && (e.QPN >= 1<<24 || e.GID.IsZero()) {
				t.Errorf("%+v", e)
			}
			return nil
		})
	})
}
