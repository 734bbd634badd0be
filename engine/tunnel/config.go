package tunnel

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"xroce/encap"
	"xroce/encap/bridge"
	"xroce/roce/clock"
)

// A Peer is the other end of a tunnel, or one of them.
type Peer struct {
	Addr netip.Addr
	// Routes are the prefixes that the peer has, of a TUN: what is for them goes there, and
	// what comes from there is from them. None, with a single peer, are all addresses.
	Routes []netip.Prefix
}

// MaxPeers is how many peers a tunnel may have, with those that are learned.
const MaxPeers = 64

// Config says what a tunnel is.
type Config struct {
	Over Over
	// Format is EoIB or VNIC of a TAP; IPoIB (UD) or IPoIBConnected (RC, UC) of a TUN; Raw and
	// the like over native packets, of both.
	Format encap.Format
	Peers  []Peer
	// Learn are prefixes whose addresses need not be named: who asks from one, and answers there,
	// is a peer until it has been away for LearnIdle. Of a TUN it has the addresses that it sends
	// from, as long as no named peer has a route for them and no other one had them before.
	Learn   []netip.Prefix
	Learned int // peers that may be learned at once, 0 for DefaultLearned
	// PerStation is how many of them may be behind one MAC address on the link when there is no
	// key: 0 for a quarter of Learned. A router on the link is one for all that are behind it.
	PerStation int
	LearnIdle  time.Duration // 0 for DefaultLearnIdle

	// Group is a multicast group, of a TAP over UD, that has what is for all peers, or for an
	// address that is not known, instead of each of them. All ends have the same.
	Group netip.Addr

	Port uint16 // of rdma_cm, where both ends wait; 0 for DefaultPort
	// Segment is which network this is. Peers of another one are refused.
	Segment uint16
	// PKeyIndex is the partition that everything is in, by the index of its P_Key in the table
	// of the device. Peers that are not in it are refused; those in none of the partitions of
	// the device are not even heard.
	PKeyIndex uint16
	// Mark is what the headers around datagrams have instead of what is in the datagrams.
	Mark Mark
	// Key encrypts everything, and refuses what is not encrypted with it; nil for nothing.
	Key *Key
	// Rekey is how long one agreement on keys is used, 0 for 2 minutes.
	Rekey time.Duration
	// Age is how long an address is kept that sends nothing, 0 for 300 s.
	Age time.Duration
	// Addresses is how many addresses are kept that were learned, 0 for 4,096.
	Addresses int
	// Suppress has questions of ARP and neighbour discovery from inside answered here, of a
	// TAP, for hosts at peers that said who they are within Age.
	Suppress bool

	// Spin is how long the thread of an inside that is polled looks for work before it sleeps, 0
	// for as long as lately paid, 200 µs at most, and not at all behind a longer pause.
	Spin time.Duration
	CPU  int // that this thread runs on, counted from 1; 0 for any

	Logger *slog.Logger // nil for none

	life       clock.Time // of a frame that comes in segments, 0 for what encap says
	ackTimeout uint8      // code, of connections, 0 for defaultAckTimeout
	// renew is how long a connection over UC is used at most, 0 for defaultRefresh.
	renew time.Duration
	// refresh is how often a peer is looked up that was found, over UD and native, 0 for
	// defaultRefresh.
	refresh time.Duration
}

// DefaultPort is where both ends wait by default.
const DefaultPort = 4790

const defaultRekey = 2 * time.Minute

// complete sets defaults, and says what is wrong.
func (c *Config) complete(inside *Inside) error {
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Rekey == 0 {
		c.Rekey = defaultRekey
	}
	if c.ackTimeout == 0 {
		c.ackTimeout = defaultAckTimeout
	}
	if c.renew == 0 {
		c.renew = defaultRefresh
	}
	if c.refresh == 0 {
		c.refresh = defaultRefresh
	}
	spec := c.Format.Spec()
	switch {
	case spec == nil || spec.Carriers&c.Over.carrier() == 0:
		return fmt.Errorf("tunnel: format %s does not travel over %s", c.Format, c.Over)
	case inside.Kind == TAP && !spec.Carries(encap.Ethernet):
		return fmt.Errorf("tunnel: format %s carries no Ethernet frames, those of a TAP", c.Format)
	case inside.Kind == TUN && !spec.Carries(encap.IPv4) && !spec.Carries(encap.IPv6):
		return fmt.Errorf("tunnel: format %s carries no IP packets, those of a TUN", c.Format)
	case c.Suppress && inside.Kind == TUN:
		return errors.New("tunnel: a TUN has no questions of ARP to be answered")
	case c.Over == OverNative && c.Key != nil:
		return errors.New("tunnel: native packets are not encrypted: use ud, rc or uc with a key")
	case len(inside.Queues) < 1 || len(inside.Queues) > MaxQueues:
		return fmt.Errorf("tunnel: %d queues are not in 1..%d", len(inside.Queues), MaxQueues)
	case c.Mark.check(c.Over) != nil:
		return c.Mark.check(c.Over)
	case c.Age < 0 || c.Rekey < 0:
		return fmt.Errorf("tunnel: an age of %s, or keys for %s, is negative", c.Age, c.Rekey)
	}
	if err := c.checkPeers(inside.Kind); err != nil {
		return err
	}
	return c.checkGroup(inside.Kind)
}

func (c *Config) checkPeers(kind InsideKind) error {
	if n := c.mostPeers(); n < 1 || n > MaxPeers {
		return fmt.Errorf("tunnel: %d peers are not in 1..%d", n, MaxPeers)
	}
	if err := c.checkLearning(); err != nil {
		return err
	}
	c.Peers = slices.Clone(c.Peers)
	for i := range c.Peers {
		p := &c.Peers[i]
		p.Addr = p.Addr.Unmap()
		switch {
		case !p.Addr.IsValid() || p.Addr.IsMulticast() || p.Addr.IsUnspecified():
			return fmt.Errorf("tunnel: no peer can be at %s", p.Addr)
		case slices.ContainsFunc(c.Peers[:i], func(q Peer) bool { return q.Addr == p.Addr }):
			return fmt.Errorf("tunnel: peer %s twice", p.Addr)
		case kind == TAP && len(p.Routes) > 0:
			return fmt.Errorf("tunnel: routes to %s, a TAP has none", p.Addr)
		case kind == TUN && len(p.Routes) == 0 && (len(c.Peers) > 1 || len(c.Learn) > 0):
			return fmt.Errorf("tunnel: no routes to %s, and it is not the only peer", p.Addr)
		}
	}
	return nil
}

// checkLearning sets the defaults of learning, and says what is wrong with it.
func (c *Config) checkLearning() error {
	if len(c.Learn) > maxLearnPrefixes {
		return fmt.Errorf("tunnel: %d prefixes to learn from are more than %d", len(c.Learn),
			maxLearnPrefixes)
	}
	c.Learn = slices.Clone(c.Learn)
	for _, p := range c.Learn {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().IsMulticast() {
			return fmt.Errorf("tunnel: %s is no prefix of addresses that peers have: %s?", p,
				p.Masked())
		}
	}
	switch {
	case c.Learned < 0 || c.PerStation < 0 || c.LearnIdle < 0:
		return fmt.Errorf("tunnel: %d peers that are learned, %d of a station, or %s for them, "+
			"is negative", c.Learned, c.PerStation, c.LearnIdle)
	case c.LearnIdle == 0:
		c.LearnIdle = DefaultLearnIdle
	}
	return nil
}

// maxLearnPrefixes bounds how many prefixes there are: they are looked through one by one.
const maxLearnPrefixes = 64

// mostPeers is how many peers there can be at once.
func (c *Config) mostPeers() int {
	switch {
	case len(c.Learn) == 0:
		return len(c.Peers)
	case c.Learned == 0:
		return len(c.Peers) + DefaultLearned
	}
	return len(c.Peers) + c.Learned
}

// perStation is how many peers may be learned from one station.
func (c *Config) perStation() int {
	switch {
	case c.PerStation > 0:
		return c.PerStation
	case c.Learned == 0:
		return DefaultLearned / 4
	}
	return max(c.Learned/4, 1)
}

// routes are those of all peers.
func (c *Config) routes() (*bridge.Routes, error) {
	var list []bridge.Route
	for i, p := range c.Peers {
		port := bridge.Port(i + 1)
		for _, prefix := range p.Routes {
			list = append(list, bridge.Route{Prefix: prefix, Port: port})
		}
		if len(p.Routes) == 0 {
			list = append(list,
				bridge.Route{Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Port: port},
				bridge.Route{Prefix: netip.PrefixFrom(netip.IPv6Unspecified(), 0), Port: port})
		}
	}
	return bridge.NewRoutes(list)
}
