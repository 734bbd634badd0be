package perf

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"xroce/engine/oob/perftest"
	"xroce/roce/wire"
)

func TestKeys(t *testing.T) {
	b := putKeys(perftest.Endpoint{
		OutReads: 16, QPN: 0x15e, PSN: 0xcde786, RKey: 0x1234, VAddr: 0x0102030405060708,
		GID: wire.GID{10: 0xff, 11: 0xff, 12: 192, 13: 168, 14: 77, 15: 2}, SRQN: 7,
	})
	want := "\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x01\x5e\x00\xcd\xe7\x86\x00\x00\x12\x34" +
		"\x00\x00\x00\x00\x01\x02\x03\x04\x05\x06\x07\x08" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\xa8\x4d\x02" +
		"\x00\x00\x00\x07\x00\x00\x00\x00"
	if string(b) != want {
		t.Errorf("%q, want\n%q", b, want)
	}
	for n := range keysLen {
		if _, err := parseKeys(b[:n], wire.GID{}); !errors.Is(err, perftest.ErrMessage) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		e := perftest.Endpoint{
			LID: rapid.Uint16().Draw(t, "lid"), OutReads: rapid.Uint16().Draw(t, "out_reads"),
			QPN:  rapid.Uint32Max(1<<24-1).Draw(t, "qpn"),
			PSN:  wire.PSN(rapid.Uint32Max(1<<24-1).Draw(t, "psn")),
			RKey: rapid.Uint32().Draw(t, "rkey"), VAddr: rapid.Uint64().Draw(t, "vaddr"),
			SRQN: rapid.Uint32().Draw(t, "srqn"),
		}
		copy(e.GID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "gid"))
		if got, err := parseKeys(putKeys(e), e.GID); err != nil || got != e {
			t.Fatalf("%+v becomes %+v, %v", e, got, err)
		}
		got, err := parseKeys(putKeys(e), wire.GID{})
		if refused := errors.Is(err, perftest.ErrMessage); refused != e.GID.IsMulticast() {
			t.Fatalf("%+v becomes %+v, %v", e, got, err)
		}
	})
}
