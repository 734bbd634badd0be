package bpf

import (
	"net/netip"
	"testing"
)

func TestClassify(t *testing.T) {
	keys := ownedKeys()
	owns := func(k Key) bool { return keys[k] }
	reached := map[Reason]bool{PassNoSocket: true} // the kernel's alone
	for _, f := range fixtures() {
		verdict, reason := Classify(f.frame, owns)
		if verdict != f.reason.Verdict() || reason != f.reason {
			t.Errorf("%s: %v %v, want %v %v: %s",
				f.name, verdict, reason, f.reason.Verdict(), f.reason, f.why)
		}
		reached[reason] = true
	}
	for r := range Reason(NumReasons) {
		if !reached[r] {
			t.Errorf("no fixture reaches %v", r)
		}
	}
}

// A frame that is redirected must not be when it is cut anywhere in the packet,
// and must still be with padding behind it.
func TestClassifyPrefixes(t *testing.T) {
	keys := ownedKeys()
	owns := func(k Key) bool { return keys[k] }
	for _, frame := range [][]byte{udp4(ownIPv4), udp6(ownIPv6)} {
		for n := range frame {
			if verdict, reason := Classify(frame[:n], owns); reason != PassTruncated {
				t.Errorf("%d of %d bytes: %v %v", n, len(frame), verdict, reason)
			}
		}
		for pad := range 64 {
			padded := cat(frame, make([]byte, pad))
			if verdict, reason := Classify(padded, owns); verdict != Redirect {
				t.Errorf("%d bytes of padding: %v %v", pad, verdict, reason)
			}
		}
	}
}

func TestClassifyAllocs(t *testing.T) {
	keys := ownedKeys()
	owns := func(k Key) bool { return keys[k] }
	frame := udp6(ownIPv6)
	if n := testing.AllocsPerRun(100, func() { Classify(frame, owns) }); n != 0 {
		t.Errorf("Classify allocates %v times", n)
	}
}

func TestKeys(t *testing.T) {
	ip := func(s string) Key {
		k, err := AddrKey(netip.MustParseAddr(s))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, c := range []struct {
		key  Key
		kind Kind
		text string
	}{
		{ip("192.0.2.1"), KindIPv4, "192.0.2.1"},
		{ip("::ffff:192.0.2.1"), KindIPv4, "192.0.2.1"},
		{ip("fe80::1%eth0"), KindIPv6, "fe80::1"},
		{ip("ff0e::1"), KindIPv6, "ff0e::1"},
		{V1Key(ownMAC), KindV1, "02:00:00:00:00:01"},
		{NativeKey(ownMAC), KindNative, "02:00:00:00:00:01"},
	} {
		if c.key.Kind != c.kind || c.key.String() != c.text {
			t.Errorf("%v of kind %d, want %s of kind %d", c.key, c.key.Kind, c.text, c.kind)
		}
		if err := c.key.check(); err != nil {
			t.Errorf("%v: %v", c.key, err)
		}
	}
	if ip("192.0.2.1") != ip("::ffff:192.0.2.1") {
		t.Error("a mapped address and its IPv4 address have different keys")
	}
	for _, bad := range []netip.Addr{{}, netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if k, err := AddrKey(bad); err == nil {
			t.Errorf("AddrKey(%v) = %v, want an error", bad, k)
		}
	}
	if err := (Key{}).check(); err == nil {
		t.Error("the zero key passes")
	}
}

// FuzzClassify looks for frames on which the two classifiers differ, when the
// program can be loaded here, and for broken promises of the Go one in any case.
func FuzzClassify(f *testing.F) {
	for _, x := range fixtures() {
		f.Add(x.frame)
	}
	keys := ownedKeys()
	owns := func(k Key) bool { return keys[k] }
	kernel := kernelOracle(f)
	f.Fuzz(func(t *testing.T, frame []byte) {
		verdict, reason := Classify(frame, owns)
		if verdict != reason.Verdict() || reason >= PassNoSocket {
			t.Fatalf("%v %v", verdict, reason)
		}
		if verdict == Redirect {
			if _, padded := Classify(cat(frame, make([]byte, 7)), owns); padded != reason {
				t.Errorf("%v turns into %v with padding", reason, padded)
			}
			none := func(Key) bool { return false }
			if _, foreign := Classify(frame, none); foreign != PassNotOurs {
				t.Errorf("%v without owned addresses", foreign)
			}
		}
		if kernel != nil {
			kernel(t, frame, verdict, reason)
		}
	})
}
