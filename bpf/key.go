package bpf

import (
	"errors"
	"fmt"
	"net/netip"
)

// MaxKeys is how many addresses a Program can own at a time.
const MaxKeys = 4096

// A Kind is what an address in a Key is.
type Kind uint8

// The kinds, with the numbers of enum kind in xdp.c.
const (
	KindIPv4   Kind = 1 // RoCE v2 over IPv4
	KindIPv6   Kind = 2 // RoCE v2 over IPv6
	KindV1     Kind = 3 // RoCE v1, by MAC address
	KindNative Kind = 4 // native InfiniBand, by MAC address
)

// A Key is a destination address that packets can be taken for, unicast or
// multicast, in the form that the program looks it up in: struct key in xdp.c.
// IPv4 addresses are mapped (::ffff:a.b.c.d) as in a GID, and still differ in
// kind from the same 16 bytes in an IPv6 header, which no honest peer sends.
// A MAC address is followed by ten zeros.
type Key struct {
	Addr [16]byte
	Kind Kind
	_    [3]byte
}

// AddrKey returns the key of an IP address. A mapped IPv4 address is an IPv4
// address; a zone does not count, because a program sees one interface only.
// The unspecified address (the rest of a zero GID) is an error.
func AddrKey(addr netip.Addr) (Key, error) {
	if !addr.IsValid() {
		return Key{}, errors.New("bpf: invalid IP address")
	}
	addr = addr.Unmap()
	if addr.IsUnspecified() {
		return Key{}, fmt.Errorf("bpf: nobody can own the unspecified address %v", addr)
	}
	if addr.Is4() {
		return Key{Addr: addr.As16(), Kind: KindIPv4}, nil
	}
	return Key{Addr: addr.As16(), Kind: KindIPv6}, nil
}

// V1Key returns the key of a MAC address for frames of RoCE v1, EtherType 0x8915.
func V1Key(mac [6]byte) Key { return macKey(KindV1, mac) }

// NativeKey returns the key of a MAC address for frames of EtherType 0x88B5.
func NativeKey(mac [6]byte) Key { return macKey(KindNative, mac) }

func macKey(kind Kind, mac [6]byte) Key {
	k := Key{Kind: kind}
	copy(k.Addr[:], mac[:])
	return k
}

// String returns the address in its usual form.
func (k Key) String() string {
	switch k.Kind {
	case KindIPv4, KindIPv6:
		addr := netip.AddrFrom16(k.Addr)
		if k.Kind == KindIPv4 {
			addr = addr.Unmap()
		}
		return addr.String()
	case KindV1, KindNative:
		a := k.Addr
		return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4], a[5])
	}
	return fmt.Sprintf("Kind(%d) %x", k.Kind, k.Addr)
}

// check refuses keys that no packet can match.
func (k Key) check() error {
	if k.Kind < KindIPv4 || k.Kind > KindNative {
		return fmt.Errorf("bpf: key of unknown kind %d: use AddrKey, V1Key or NativeKey", k.Kind)
	}
	return nil
}
