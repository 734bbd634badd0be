package bpf

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestCollectorTakes: the program takes what its filter names, with up to two tags, and nothing
// else, and no frame that is cut short.
func TestCollectorTakes(t *testing.T) {
	requireXDP(t)
	c := &Collector{name: "none"}
	f := Filter{UDPPorts: []uint16{9, 4791}, EtherTypes: []uint16{0x88b6, ethPIBoE}}
	if err := c.load(f, 1); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := c.Register(0, fd); err != nil {
		t.Fatal(err)
	}
	if err := c.Register(1, fd); err == nil {
		t.Error("there is a queue 1")
	}
	payload := make([]byte, 40)
	in4 := func(port uint16) []byte {
		return cat(ether(otherMAC, ethPIP), ipv4(otherIPv4, protoUDP, nil, udp(port, payload)))
	}
	in6 := func(port uint16) []byte {
		return cat(ether(otherMAC, ethPIPv6), ipv6(ownIPv6, protoUDP, udp(port, payload)))
	}
	tagged := func(b []byte) []byte { return cat(b[:12], []byte{0x81, 0, 0, 5}, b[12:]) }
	const take, pass = 4, 2
	for name, c2 := range map[string]struct {
		frame []byte
		want  uint32
	}{
		"port":               {in4(9), take},
		"another port":       {in4(10), pass},
		"roce":               {in4(4791), take},
		"ipv6":               {in6(9), take},
		"another in ipv6":    {in6(10), pass},
		"tagged":             {tagged(in4(9)), take},
		"two tags":           {tagged(tagged(in4(9))), take},
		"two tags, ipv6":     {tagged(tagged(in6(9))), take},
		"of a service":       {poke(poke(tagged(tagged(in4(9))), 12, 0x88), 13, 0xa8), take},
		"two tags, type":     {tagged(tagged(cat(ether(otherMAC, 0x88b6), payload))), take},
		"two tags, other":    {tagged(tagged(in4(10))), pass},
		"three tags":         {tagged(tagged(tagged(in4(9)))), pass},
		"type":               {cat(ether(otherMAC, 0x88b6), payload), take},
		"tagged type":        {tagged(cat(ether(otherMAC, ethPIBoE), payload)), take},
		"another type":       {cat(ether(otherMAC, 0x0806), payload), pass},
		"fragment":           {poke(in4(9), 20, 0x20), pass},
		"no UDP":             {poke(in4(9), 23, 6), pass},
		"no UDP in IPv6":     {poke(in6(9), 20, 6), pass},
		"options":            {poke(in4(9), 14, 0x46), pass},
		"cut short":          {in4(9)[:41], pass},
		"cut short in IPv6":  {in6(9)[:61], pass},
		"cut short with tag": {tagged(in4(9))[:17], pass},
		"cut short with two": {tagged(tagged(in4(9)))[:21], pass},
	} {
		got, err := c.prog.Run(&ebpf.RunOptions{Data: c2.frame})
		if err != nil || got != c2.want {
			t.Errorf("%s: verdict %d, %v, want %d", name, got, err, c2.want)
		}
	}
}

// TestCollectorFallsBack: a Collector says where it runs, and why not in the driver though nobody
// asked for another place.
func TestCollectorFallsBack(t *testing.T) {
	requireXDP(t)
	enterNamespace(t)
	lo, err := netlink.LinkByName("lo") // its driver has no XDP
	if err != nil {
		t.Fatal(err)
	}
	for mode, why := range map[Mode]error{Auto: unix.EOPNOTSUPP, Generic: nil} {
		c, err := Collect(lo.Attrs().Index, Filter{UDPPorts: []uint16{9}}, Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		if c.Mode() != Generic || !errors.Is(c.NativeErr(), why) {
			t.Errorf("%v: %v (%v), want generic (%v)", mode, c.Mode(), c.NativeErr(), why)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFilterRefused: what takes the kernel's traffic away, or nothing.
func TestFilterRefused(t *testing.T) {
	for _, f := range []Filter{
		{},
		{EtherTypes: []uint16{ethPIP}},
		{EtherTypes: []uint16{0x0806}},
		{UDPPorts: make([]uint16, 17)},
	} {
		if _, err := Collect(1, f, Options{}); err == nil {
			t.Errorf("%+v is a filter", f)
		}
	}
}
