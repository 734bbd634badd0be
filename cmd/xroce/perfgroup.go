package main

import (
	"net/netip"
	"strconv"
	"strings"

	"xroce/cmd/xroce/internal/perf"
	"xroce/roce/wire"
)

// The groups of -g without -M: of the site, and of nobody else (RFC 2365 section 6.1, RFC 4291
// section 2.7).
const (
	perfGroup4 = "239.255.185.15"
	perfGroup6 = "ff15::1:8515"
)

// setGroup is the group that the flags ask for. One of IPv6 needs a GID of IPv6.
func (f *perfFlags) setGroup(c *perf.Config) error {
	switch {
	case !f.multicast && f.group != "":
		return usagef("-M is for -g")
	case !f.multicast:
		return nil
	}
	text := f.group
	switch {
	case text != "":
	case c.IPv6:
		text = perfGroup6
	default:
		text = perfGroup4
	}
	group, ok := parseMGID(text)
	if !ok {
		return usagef("-M %s: neither an address nor 16 numbers with colons between them", text)
	}
	c.Group = group
	c.IPv6 = c.IPv6 || !group.IsIPv4()
	return nil
}

// parseMGID reads an address, or a GID as perftest has it: sixteen decimal octets.
func parseMGID(text string) (g wire.GID, ok bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return wire.GID(addr.As16()), true
	}
	octets := strings.Split(text, ":")
	if len(octets) != len(g) {
		return g, false
	}
	for i, s := range octets {
		n, err := strconv.ParseUint(s, 0, 8)
		if err != nil {
			return g, false
		}
		g[i] = byte(n)
	}
	return g, true
}
