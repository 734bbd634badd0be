package filter

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"xroce/engine/capture"
)

// This file has the conditions of tcpdump.

// A side says of which end a condition is.
type side uint8

const (
	eitherEnd side = iota // src or dst
	bothEnds              // src and dst
	srcEnd
	dstEnd
)

// of joins what is found at either end.
func (s side) of(src, dst bool) bool {
	switch s {
	case srcEnd:
		return src
	case dstEnd:
		return dst
	case bothEnds:
		return src && dst
	}
	return src || dst
}

// words are the conditions of one word.
var words = map[string]test{
	"inbound":  func(v *view) bool { return v.packet.Dir == capture.Inbound },
	"outbound": func(v *view) bool { return v.packet.Dir == capture.Outbound },
	"roce":     func(v *view) bool { return v.rocePacket() != nil },
	"arp":      etherTypeIs(etherARP),
	"tcp":      protocolIs(protoTCP),
	"icmp":     protocolIs(protoICMP),
	"icmp6":    protocolIs(protoICMPv6),
}

func etherTypeIs(n int) test {
	return func(v *view) bool { v.parse(); return v.etherType == n }
}

func protocolIs(n int) test {
	return func(v *view) bool { v.parse(); return v.protocol == n }
}

// protocols are those that qualify a condition, or are one.
var protocols = map[string]test{
	"ether": func(*view) bool { return true },
	"ip":    etherTypeIs(etherIPv4),
	"ip6":   etherTypeIs(etherIPv6),
	"udp":   protocolIs(protoUDP),
}

// primitive is a condition.
func (p *parser) primitive() test {
	word := strings.ToLower(p.token)
	if f, ok := fields[word]; ok {
		p.next()
		return p.field(word, f)
	}
	if t := words[word]; t != nil {
		p.next()
		return t
	}
	if protocols[word] != nil {
		return p.qualified(word)
	}
	switch word {
	case "vlan":
		return p.vlan()
	case "less", "greater":
		p.next()
		n := int(p.number(16))
		less := word == "less"
		return func(v *view) bool {
			if less {
				return v.size() <= n
			}
			return v.size() >= n
		}
	}
	if t := p.address(nil); t != nil {
		return t
	}
	p.fail("%q is no condition", p.token)
	return never
}

// qualified is a condition that begins with a protocol.
func (p *parser) qualified(word string) test {
	is := protocols[word]
	p.next()
	switch {
	case p.is("["):
		return p.accessor(word, is)
	case word == "ether":
		return p.ether()
	case p.accept("proto"):
		n := int(p.number(8))
		return func(v *view) bool { v.parse(); return is(v) && v.protocol == n }
	}
	if t := p.address(is); t != nil {
		return t
	}
	return is
}

// vlan is whether there is a tag, or one of an ID.
func (p *parser) vlan() test {
	p.next()
	if p.kind != tokenWord || p.token[0] < '0' || p.token[0] > '9' {
		return func(v *view) bool { v.parse(); return v.vlan >= 0 }
	}
	id := int(p.number(12))
	return func(v *view) bool { v.parse(); return v.vlan == id }
}

// accessor compares bytes of a header: ip[9] == 17, ether[12:2] & 0xff00 != 0.
func (p *parser) accessor(header string, is test) test {
	p.inBrackets = true // what is between them has colons of its own
	p.next()
	off, n := int(p.number(16)), 1
	if p.accept(":") {
		n = int(p.number(4))
		if n != 1 && n != 2 && n != 4 {
			p.fail("1, 2 or 4 bytes can be read")
		}
	}
	p.inBrackets = false
	p.expect("]")
	mask := ^uint64(0)
	if p.accept("&") {
		mask = p.number(32)
	}
	compare, want := p.comparison(), p.number(32)
	return func(v *view) bool {
		v.parse()
		base := 0
		switch header {
		case "ip", "ip6":
			base = v.network
		case "udp":
			if base = v.transport; base < 0 {
				return false
			}
		}
		have, ok := uint64(0), is(v)
		if ok {
			have, ok = v.load(base+off, n)
		}
		return ok && compare(have&mask, want)
	}
}

// ether is a condition on the Ethernet header.
func (p *parser) ether() test {
	switch {
	case p.accept("proto"):
		n := int(p.number(16))
		return etherTypeIs(n)
	case p.accept("broadcast"):
		return func(v *view) bool { x, ok := v.load(0, 6); return ok && x == 1<<48-1 }
	case p.accept("multicast"):
		return func(v *view) bool { x, ok := v.load(0, 1); return ok && x&1 == 1 }
	}
	end, _ := p.side()
	p.accept("host")
	mac, err := net.ParseMAC(p.token)
	if err != nil || len(mac) != 6 {
		p.fail("want a MAC address%s", p.found())
		return never
	}
	p.next()
	want := uint64(0)
	for _, b := range mac {
		want = want<<8 | uint64(b)
	}
	return func(v *view) bool {
		dst, ok1 := v.load(0, 6)
		src, ok2 := v.load(6, 6)
		return end.of(ok2 && src == want, ok1 && dst == want)
	}
}

// side takes "src", "dst", "src or dst" or "src and dst", if they are there.
func (p *parser) side() (s side, given bool) {
	for _, first := range []string{"src", "dst"} {
		if !p.is(first) {
			continue
		}
		p.next()
		s = map[string]side{"src": srcEnd, "dst": dstEnd}[first]
		other := map[string]string{"src": "dst", "dst": "src"}[first]
		start := *p
		if p.accept("or") && p.accept(other) {
			return eitherEnd, true
		}
		*p = start
		if p.accept("and") && p.accept(other) {
			return bothEnds, true
		}
		*p = start
		return s, true
	}
	return eitherEnd, false
}

// address is a condition on the address or the port of one end, with a protocol that there
// must be besides, nil for any. It is nil when the token begins none.
func (p *parser) address(is test) test {
	if is == nil {
		is = protocols["ether"]
	}
	end, given := p.side()
	switch {
	case p.accept("host"):
		return p.host(is, end)
	case p.accept("net"):
		return p.net(is, end)
	case p.accept("port"):
		n := p.number(16)
		return portsIn(is, end, n, n)
	case p.accept("portrange"):
		from, to, ok := strings.Cut(p.token, "-")
		low, err1 := strconv.ParseUint(from, 10, 16)
		high, err2 := strconv.ParseUint(to, 10, 16)
		if !ok || err1 != nil || err2 != nil || low > high {
			p.fail("want two ports as 1000-2000%s", p.found())
		}
		p.next()
		return portsIn(is, end, low, high)
	case given:
		return p.host(is, end)
	}
	return nil
}

// host is an address.
func (p *parser) host(is test, end side) test {
	a, err := netip.ParseAddr(p.token)
	if err != nil || a.Zone() != "" {
		p.fail("want an IP address%s", p.found())
		return never
	}
	p.next()
	return addrsIn(is, end, netip.PrefixFrom(a, a.BitLen()))
}

// net is a range of addresses.
func (p *parser) net(is test, end side) test {
	prefix, err := netip.ParsePrefix(p.token)
	switch {
	case err != nil:
		p.fail("want addresses as 192.0.2.0/24%s", p.found())
		return never
	case prefix != prefix.Masked():
		p.fail("%s has bits behind its mask: is %s meant?", p.token, prefix.Masked())
		return never
	}
	p.next()
	return addrsIn(is, end, prefix)
}

func addrsIn(is test, end side, prefix netip.Prefix) test {
	return func(v *view) bool {
		src, dst := v.addrs()
		return is(v) && end.of(prefix.Contains(src), prefix.Contains(dst))
	}
}

func portsIn(is test, end side, low, high uint64) test {
	return func(v *view) bool {
		src, dst, ok := v.ports()
		return ok && is(v) && end.of(src >= low && src <= high, dst >= low && dst <= high)
	}
}
