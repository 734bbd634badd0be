package oob

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"xroce/roce/wire"
)

var sample = Endpoint{
	QPN: 0x11, PSN: 0x28a720, GID: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")),
}

const sampleText = "0000:000011:28a720:00000000000000000000ffffc0000201"

func TestMessage(t *testing.T) {
	var buf bytes.Buffer
	if err := Send(&buf, sample); err != nil {
		t.Fatal(err)
	}
	if got := buf.String(); got != sampleText+"\x00" {
		t.Errorf("message %q", got)
	}
	if got, err := Receive(&buf); err != nil || got != sample {
		t.Errorf("read back %+v, %v", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", sampleText[:50], sampleText + "0", strings.Replace(sampleText, ":", "-", 1),
		strings.Replace(sampleText, "c", "x", 1), strings.Replace(sampleText, "0000:", "00:00", 1),
		strings.Replace(sampleText, "28a720:0", "28a7200:", 1),
		strings.Replace(sampleText, "c00002", "e00000", 1), // a group
	} {
		if e, err := Parse(text); !errors.Is(err, ErrMessage) {
			t.Errorf("%q: parsed as %+v, %v", text, e, err)
		}
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	for n := range messageLen {
		_, err := Receive(strings.NewReader((sampleText + "\x00")[:n]))
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestDone(t *testing.T) {
	var buf bytes.Buffer
	if err := SendDone(&buf); err != nil {
		t.Fatal(err)
	}
	if err := ReceiveDone(&buf); err != nil {
		t.Error(err)
	}
	if err := ReceiveDone(strings.NewReader("down\x00")); !errors.Is(err, ErrMessage) {
		t.Errorf("wrong word: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sampleText)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(string(e.AppendText(nil))); err != nil || again != e {
			t.Errorf("%q: %+v does not survive: %+v, %v", text, e, again, err)
		}
	})
}
