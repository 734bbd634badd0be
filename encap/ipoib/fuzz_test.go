package ipoib

import (
	"bytes"
	"testing"
)

// FuzzARP reads anything; what is read is written as it was, but for reserved flags.
func FuzzARP(f *testing.F) {
	f.Add(unhex(f, arpBytes))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseARP(b)
		if err != nil {
			if a != (ARP{}) {
				t.Fatalf("%v, and yet %+v", err, a)
			}
			return
		}
		got := make([]byte, ARPLen)
		a.Put(got)
		want := bytes.Clone(b[:ARPLen])
		want[arpOffSender] &= byte(knownFlags)
		want[arpOffTarget] &= byte(knownFlags)
		if !bytes.Equal(got, want) {
			t.Fatalf("% x becomes % x", want, got)
		}
	})
}

// FuzzLinkLayer looks for an option in anything; what is found is there.
func FuzzLinkLayer(f *testing.F) {
	f.Add(unhex(f, "05 01 0000 000007fc"+"01 03 0000"+aliceBytes), uint8(SourceLinkLayer))
	f.Add(unhex(f, "02 03 0000"+bobBytes), uint8(TargetLinkLayer))
	f.Add([]byte{1, 0}, uint8(SourceLinkLayer))
	f.Fuzz(func(t *testing.T, b []byte, typ uint8) {
		a, found, err := FindLinkLayer(b, typ)
		if !found || err != nil {
			if a != (Address{}) || found {
				t.Fatalf("%v, and yet %+v", err, a)
			}
			return
		}
		var hw [AddressLen]byte
		a.Put(hw[:])
		if !bytes.Contains(b, hw[1:]) {
			t.Fatalf("%s is not in % x", a, b)
		}
	})
}

// FuzzAddressOf reads any text; what is read is printed and read again.
func FuzzAddressOf(f *testing.F) {
	f.Add(alice.String())
	f.Add("80:00")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := AddressOf(text)
		if err != nil {
			return
		}
		if again, err := AddressOf(a.String()); again != a || err != nil {
			t.Fatalf("%q is %+v, and then %+v (%v)", text, a, again, err)
		}
	})
}
