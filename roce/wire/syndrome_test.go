package wire

import "testing"

func TestSyndrome(t *testing.T) {
	tests := []struct {
		s    Syndrome
		kind SyndromeKind
		code uint8
		nak  Syndrome
		text string
	}{
		{0x00, KindACK, 0, 0, "ACK(credits=0)"},
		{0x1E, KindACK, 30, 0, "ACK(credits=32768)"},
		{ACKNoCredits, KindACK, 31, 0, "ACK"},
		{0x9F, KindACK, 31, 0, "ACK"}, // the reserved bit is ignored
		{0x20, KindRNRNAK, 0, 0, "RNR_NAK(timer=0)"},
		{0x3F, KindRNRNAK, 31, 0, "RNR_NAK(timer=31)"},
		{0x40, KindReserved, 0, 0, "reserved(0x40)"},
		{0x5F, KindReserved, 31, 0, "reserved(0x5f)"},
		{0x60, KindNAK, 0, NAKPSNSequenceError, "NAK(PSN_sequence_error)"},
		{0xE0, KindNAK, 0, NAKPSNSequenceError, "NAK(PSN_sequence_error)"},
		{0x61, KindNAK, 1, NAKInvalidRequest, "NAK(invalid_request)"},
		{0x62, KindNAK, 2, NAKRemoteAccessError, "NAK(remote_access_error)"},
		{0x63, KindNAK, 3, NAKRemoteOperationalError, "NAK(remote_operational_error)"},
		{0x64, KindNAK, 4, NAKInvalidRDRequest, "NAK(invalid_RD_request)"},
		{0x65, KindNAK, 5, NAKRemoteOperationalError, "reserved(0x65)"},
		{0x7F, KindNAK, 31, NAKRemoteOperationalError, "reserved(0x7f)"},
	}
	for _, tt := range tests {
		s := tt.s
		if s.Kind() != tt.kind || s.Code() != tt.code || s.NAK() != tt.nak ||
			s.String() != tt.text {
			t.Errorf("0x%02x: kind %d, code %d, NAK 0x%02x, %s, want %d, %d, 0x%02x, %s", uint8(s),
				s.Kind(), s.Code(), uint8(s.NAK()), s, tt.kind, tt.code, uint8(tt.nak), tt.text)
		}
		if s.IsACK() != (tt.kind == KindACK) || s.IsRNRNAK() != (tt.kind == KindRNRNAK) ||
			s.IsNAK() != (tt.kind == KindNAK) {
			t.Errorf("0x%02x: ACK %t, RNR %t, NAK %t", uint8(s), s.IsACK(), s.IsRNRNAK(), s.IsNAK())
		}
	}
	if ACKSyndrome(0xff) != 0x1f || RNRSyndrome(0xff) != 0x3f {
		t.Error("codes spill into the kind")
	}
}

func TestCredits(t *testing.T) {
	// From code 2 on, every second code is a power of two and the ones between
	// are half as much again.
	for code := uint8(2); code < CreditInvalid; code++ {
		want := 1 << (code / 2)
		if code%2 == 1 {
			want += want / 2
		}
		if n, ok := Credits(code); !ok || n != want {
			t.Errorf("code %d is %d, %t, want %d", code, n, ok, want)
		}
	}
	for _, code := range []uint8{CreditInvalid, 32, 255} {
		if n, ok := Credits(code); ok || n != 0 {
			t.Errorf("code %d is %d", code, n)
		}
	}
	for free := -1; free < 40000; free++ {
		code := CreditCode(free)
		n, ok := Credits(code)
		if !ok || n > max(free, 0) {
			t.Fatalf("%d free are announced as %d", free, n)
		}
		if next, ok := Credits(code + 1); ok && next <= free {
			t.Fatalf("%d free are announced as %d, not as %d", free, n, next)
		}
	}
}

func TestRNRTimer(t *testing.T) {
	known := map[uint8]int64{
		0: 655_360_000, 1: 10_000, 7: 120_000, 14: 1_280_000,
		24: 40_960_000, 31: 491_520_000,
	}
	for code, ns := range known {
		if got := RNRTimerNanos(code); got != ns {
			t.Errorf("code %d is %d ns, want %d", code, got, ns)
		}
	}
	for code := range uint8(32) {
		ns := RNRTimerNanos(code)
		if got := RNRTimerCode(ns); got != code {
			t.Errorf("%d ns gives code %d, want %d", ns, got, code)
		}
		if got := RNRTimerCode(ns + 1); code != 0 && RNRTimerNanos(got) <= ns {
			t.Errorf("%d ns gives code %d, which is shorter", ns+1, got)
		}
		if code > 1 && RNRTimerNanos(code) <= RNRTimerNanos(code-1) {
			t.Errorf("code %d is not longer than the one before", code)
		}
	}
	for _, ns := range []int64{-1, 0, 1, 10_000} {
		if got := RNRTimerCode(ns); got != 1 {
			t.Errorf("%d ns gives code %d, want 1", ns, got)
		}
	}
	if got := RNRTimerCode(1 << 60); got != 0 {
		t.Errorf("a long time gives code %d, want 0", got)
	}
}
