// Package ipoib has the addresses of IP over InfiniBand: hardware addresses of 20 bytes (RFC 4391
// section 9.1), ARP and neighbour discovery with them, the groups that IP multicast is sent to, and
// what two ends of connected mode tell each other (RFC 4755). How the packets themselves are
// carried is package encap's.
//
// On RoCE no subnet manager hands out groups, and the neighbours of the machine play the part of
// path records; the addresses are the same. A group of IPoIB is an IPv6 multicast address: a queue
// pair joins it as any other.
//
// Everything here is a function of bytes, keeps nothing and is safe for concurrent use. What a
// peer sends is looked at before it is used: nothing panics on any received byte. Put panics, as
// slices do, when there is no room.
package ipoib

import "errors"

// Errors of Parse functions.
var (
	// ErrShort says that the bytes end before what they are to be.
	ErrShort = errors.New("ipoib: too short")
	// ErrFormat says that they are something else.
	ErrFormat = errors.New("ipoib: not of IP over InfiniBand")
)
