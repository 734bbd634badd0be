package ipoib

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"xroce/roce/wire"
)

// unhex reads bytes with spaces between them.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func gid(s string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(s)) }

// Two interfaces, in bytes and in words: one offers connected mode.
const (
	aliceBytes = "80 000208 fe80 0000 0000 0000 0202 c903 0001 0203"
	bobBytes   = "00 ab0417 fe80 0000 0000 0000 0202 c903 0004 0506"
)

var (
	alice = Address{Flags: OffersRC, QPN: 0x208, GID: gid("fe80::202:c903:1:203")}
	bob   = Address{QPN: 0xab0417, GID: gid("fe80::202:c903:4:506")}
)

// TestAddress compares addresses with their bytes and their text, both ways.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		bytes, text string
		want        Address
	}{
		{aliceBytes, "80:00:02:08:fe:80:00:00:00:00:00:00:02:02:c9:03:00:01:02:03", alice},
		{bobBytes, "00:ab:04:17:fe:80:00:00:00:00:00:00:02:02:c9:03:00:04:05:06", bob},
	} {
		b := unhex(t, c.bytes)
		a, err := ParseAddress(b)
		if a != c.want || err != nil {
			t.Errorf("%s is read as %+v (%v)", c.text, a, err)
		}
		got := bytes.Repeat([]byte{0xee}, AddressLen)
		c.want.Put(got)
		if !bytes.Equal(got, b) {
			t.Errorf("%s is written as % x", c.text, got)
		}
		if a.String() != c.text {
			t.Errorf("%s is printed as %s", c.text, a)
		}
		if a, err := AddressOf(c.text); a != c.want || err != nil {
			t.Errorf("%s is taken for %+v (%v)", c.text, a, err)
		}
		for n := range b {
			if _, err := ParseAddress(b[:n]); !errors.Is(err, ErrShort) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
	reserved := unhex(t, "bf"+aliceBytes[2:])
	if a, err := ParseAddress(reserved); a != alice || err != nil {
		t.Errorf("reserved flags: %+v (%v)", a, err)
	}
	for _, bad := range []string{
		"", "80:00", strings.Repeat("0:", 19) + "0", alice.String() + ":00",
		strings.Replace(alice.String(), "c9", "xy", 1), strings.Repeat("000:", 19) + "00",
	} {
		if _, err := AddressOf(bad); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

const arpBytes = "0020 0800 14 04 0001" + aliceBytes + "c0000201" +
	"00 000000 0000 0000 0000 0000 0000 0000 0000 0000" + "c0000202"

// TestARP compares a request with its bytes, cuts it at each length, and changes what says which
// addresses there are.
func TestARP(t *testing.T) {
	want := ARP{
		Op: ARPRequest, Sender: alice, SenderIP: netip.MustParseAddr("192.0.2.1"),
		TargetIP: netip.MustParseAddr("192.0.2.2"),
	}
	b := unhex(t, arpBytes)
	if len(b) != ARPLen || ARPLen != 56 {
		t.Fatalf("%d bytes", len(b))
	}
	if a, err := ParseARP(append(b, 1, 2, 3)); a != want || err != nil {
		t.Errorf("it is read as %+v (%v)", a, err)
	}
	got := bytes.Repeat([]byte{0xee}, ARPLen)
	want.Put(got)
	if !bytes.Equal(got, b) {
		t.Errorf("it is written as % x", got)
	}
	for n := range b {
		if _, err := ParseARP(b[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for at := range 6 {
		changed := bytes.Clone(b)
		changed[at] ^= 1
		if _, err := ParseARP(changed); !errors.Is(err, ErrFormat) {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	none := ARP{TargetIP: netip.MustParseAddr("fe80::1")}
	none.Put(got)
	if a, err := ParseARP(got); err != nil || !a.TargetIP.IsUnspecified() ||
		!a.SenderIP.IsUnspecified() {
		t.Errorf("no IPv4 addresses: %+v (%v)", a, err)
	}
}

// TestLinkLayer finds the option of a type among others, and refuses what is none.
func TestLinkLayer(t *testing.T) {
	option := unhex(t, "02 03 0000"+bobBytes)
	b := make([]byte, LinkLayerLen)
	PutLinkLayer(b, TargetLinkLayer, bob)
	if !bytes.Equal(b, option) {
		t.Errorf("it is written as % x", b)
	}
	mtu := unhex(t, "05 01 0000 000007fc")
	source := unhex(t, "01 03 0000"+aliceBytes)
	all := bytes.Join([][]byte{mtu, source, option, source}, nil)
	for _, c := range []struct {
		typ   uint8
		want  Address
		found bool
	}{{SourceLinkLayer, alice, true}, {TargetLinkLayer, bob, true}, {9, Address{}, false}} {
		a, found, err := FindLinkLayer(all, c.typ)
		if a != c.want || found != c.found || err != nil {
			t.Errorf("type %d: %+v, %t (%v)", c.typ, a, found, err)
		}
	}
	for n := range all {
		_, _, err := FindLinkLayer(all[:n], SourceLinkLayer)
		whole := n == 0 || n == 8 || n == 32 || n == 56
		if whole != (err == nil) || !whole && !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for _, bad := range []string{"05 00 0000 0000 0000", "01 01 0200 0000 0001"} {
		_, found, err := FindLinkLayer(unhex(t, bad), SourceLinkLayer)
		if found || !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %t, %v", bad, found, err)
		}
	}
}

// TestGroups compares GIDs of groups with those that the RFC has for them.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		group string
		pkey  uint16
		scope Scope
		want  string
	}{
		{"224.0.0.1", 0xffff, 0, "ff12:401b:ffff::1"},
		{"239.255.255.250", 0x8001, ScopeSite, "ff15:401b:8001::fff:fffa"},
		{"224.129.2.3", 0x0005, ScopeGlobal, "ff1e:401b:8005::81:203"},
		{"ff02::1", 0xffff, 0, "ff12:601b:ffff::1"},
		{"ff02::1:ff01:203", 0x8001, 0, "ff12:601b:8001::1:ff01:203"},
		{"ff05::1:3", 0x8001, 0, "ff15:601b:8001::1:3"},
		{"ff3e:20:2001:db8:1:2:3:4", 0x8001, ScopeLinkLocal, "ff12:601b:8001:db8:1:2:3:4"},
	} {
		g, err := MulticastGID(netip.MustParseAddr(c.group), c.pkey, c.scope)
		if g != gid(c.want) || err != nil {
			t.Errorf("%s is at %s, want %s (%v)", c.group, g, c.want, err)
		}
		if pkey, ok := GroupPKey(g); !ok || pkey != c.pkey|pkeyFull || !g.IsMulticast() {
			t.Errorf("%s is of 0x%04x, %t", g, pkey, ok)
		}
	}
	for _, c := range []struct {
		pkey  uint16
		scope Scope
		want  string
	}{
		{0xffff, ScopeLinkLocal, "ff12:401b:ffff::ffff:ffff"},
		{0x0005, ScopeGlobal, "ff1e:401b:8005::ffff:ffff"},
	} {
		if g := BroadcastGID(c.pkey, c.scope); g != gid(c.want) {
			t.Errorf("broadcast is %s, want %s", g, c.want)
		}
	}
	for _, bad := range []netip.Addr{
		{},
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1"),
		netip.MustParseAddr("255.255.255.255"),
	} {
		if g, err := MulticastGID(bad, 1, 0); !errors.Is(err, ErrFormat) || !g.IsZero() {
			t.Errorf("%s: %s (%v)", bad, g, err)
		}
	}
	for _, other := range []string{"ff02::1", "ff12::1", "fe80::1", "ff02:401b:ffff::1"} {
		if _, ok := GroupPKey(gid(other)); ok {
			t.Errorf("%s is a group of IPoIB", other)
		}
	}
}

// TestConnected compares what two ends of connected mode tell each other with its bytes.
func TestConnected(t *testing.T) {
	if id := ServiceID(0xab0417); id != 0x1000000000ab0417 {
		t.Errorf("service ID 0x%016x", id)
	}
	want := ConnectData{QPN: 0xab0417, MTU: 65524}
	b := unhex(t, "00ab0417 0000fff4")
	got := make([]byte, ConnectDataLen)
	want.Put(got)
	if !bytes.Equal(got, b) {
		t.Errorf("it is written as % x", got)
	}
	if d, err := ParseConnectData(append(b, 0, 0, 0)); d != want || err != nil {
		t.Errorf("it is read as %+v (%v)", d, err)
	}
	for n := range b {
		if _, err := ParseConnectData(b[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestInterfaceID sets the bit of a GUID that says that it is one.
func TestInterfaceID(t *testing.T) {
	for _, guid := range []uint64{0x0002c90300010203, 0x0202c90300010203} {
		if id := InterfaceID(guid); id != 0x0202c90300010203 {
			t.Errorf("%016x becomes %016x", guid, id)
		}
	}
}
