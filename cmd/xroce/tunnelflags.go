package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/configfile"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/encap"
	"xroce/engine"
	"xroce/engine/tunnel"
	"xroce/roce"
	"xroce/roce/wire"
)

// tunnelFlags say what a tunnel is.
type tunnelFlags struct {
	iface        string
	tap, tun     string
	over, format string
	peers        []string
	routes       []string
	learn        []string // prefixes
	group        string
	key, file    string // names of files
	pkey         uint16
	tos          int
	fixed        func() bool // there is a tos

	inside tunnel.InsideConfig
	config tunnel.Config
}

func newTunnelFlags() *tunnelFlags { return &tunnelFlags{} }

func (f *tunnelFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.iface, "device", "d", "", "interface (default: the only one)")
	flags.StringVar(&f.tap, "tap", "", "TAP interface to make, for Ethernet frames")
	flags.StringVar(&f.tun, "tun", "", "TUN interface to make, for IP packets")
	flags.StringSliceVar(&f.peers, "peer", nil, "addresses or names of the other ends")
	flags.StringSliceVar(&f.learn, "learn", nil,
		"PREFIX: take ends with addresses in it as peers that ask")
	flags.IntVar(&f.config.Learned, "learn-max", tunnel.DefaultLearned,
		"most peers that are learned at once")
	flags.IntVar(&f.config.PerStation, "learn-station", 0, "most of them behind one MAC address, "+
		"where there is no --key (default: a quarter of --learn-max)")
	flags.DurationVar(&f.config.LearnIdle, "learn-idle", tunnel.DefaultLearnIdle,
		"how long a learned peer that does not answer is remembered")
	flags.StringVar(&f.group, "group", "",
		"multicast address that what is for all goes to, once, of a TAP over ud")
	flags.StringArrayVar(&f.routes, "route", nil,
		"PREFIX=PEER: addresses that a peer has, of a TUN; may be given often")
	flags.StringVar(&f.over, "over", "ud", "what it travels over: ud, rc, uc or native")
	flags.StringVar(&f.format, "format", "",
		"eoib or vnic of a TAP, ipoib of a TUN; raw, rawgrh or raw6 over native (default: the "+
			"first that fits)")
	flags.StringVar(&f.file, configfile.Flag, "",
		"file of flags, as lines of NAME = VALUE; the command line goes before it")
	flags.StringVar(&f.key, "key", "",
		"file with the secret of all ends: everything is encrypted then")
	flags.Uint16Var(&f.config.Segment, "segment", 0,
		"number of the network: peers of another one are refused")
	flags.Uint16Var(&f.pkey, "pkey", wire.DefaultPKey,
		"P_Key of the partition that it is in, with 0x8000 as a full member: others are not heard")
	flags.IntVar(&f.tos, "tos", 0, "traffic class of the packets outside, the DSCP in its upper "+
		"six bits (default: over ud that of each datagram, else 0)")
	f.fixed = func() bool { return flags.Changed("tos") }
	flags.Uint8Var(&f.config.Mark.Priority, "priority", 0,
		"of the VLAN tags of the packets outside, 0 to 7")
	flags.Uint16VarP(&f.config.Port, "port", "p", tunnel.DefaultPort,
		"port of rdma_cm, the same at all ends")
	flags.IntVar(&f.inside.MTU, "mtu", 0,
		"MTU of the interface that is made (default: 1500, or less where the format needs it)")
	flags.IntVar(&f.inside.Queues, "inside-queues", 1,
		"queues of that interface, with a thread each")
	flags.DurationVar(&f.config.Age, "age", 300*time.Second,
		"how long an address is kept that sends nothing")
	flags.BoolVar(&f.config.Suppress, "suppress", false,
		"answer ARP and neighbour discovery for known hosts at peers, of a TAP")
	flags.IntVar(&f.config.Addresses, "addresses", 4096, "most addresses that are learned")
}

// check completes the flags, or tells what is wrong with them.
func (f *tunnelFlags) check(ctx context.Context) (err error) {
	switch {
	case (f.tap == "") == (f.tun == ""):
		return usagef("either --tap NAME or --tun NAME is needed")
	case len(f.peers) == 0 && len(f.learn) == 0:
		return usagef("--peer is needed: the address of the other end, or --learn PREFIX")
	case f.config.PerStation < 0:
		return usagef("--learn-station %d is negative", f.config.PerStation)
	case f.config.Learned < 1 || f.config.LearnIdle <= 0:
		return usagef("--learn-max is to be 1 or more, and --learn-idle longer than nothing")
	}
	if err := f.partition().Check(); err != nil {
		return usagef("--pkey 0x%04x is of no partition", f.pkey)
	}
	f.inside.Name, f.inside.Kind = f.tap, tunnel.TAP
	if f.tun != "" {
		f.inside.Name, f.inside.Kind = f.tun, tunnel.TUN
	}
	if f.config.Over, err = tunnel.ParseOver(f.over); err != nil {
		return usageError{err}
	}
	switch {
	case f.config.Over == tunnel.OverNative && f.key != "":
		return usagef("--over native has no --key: ud, rc and uc are encrypted with one")
	case f.config.Suppress && f.tun != "":
		return usagef("--suppress is of a --tap: a TUN asks for nobody")
	}
	if err := f.parseMark(); err != nil {
		return err
	}
	f.inside.Whole = true
	if f.key != "" {
		if f.config.Key, err = readKey(f.key); err != nil {
			return err
		}
	}
	if err := f.chooseFormat(); err != nil {
		return err
	}
	if err := f.parsePrefixes(); err != nil {
		return err
	}
	if err := f.parseGroup(); err != nil {
		return err
	}
	return f.resolve(ctx)
}

// parsePrefixes reads where peers are learned from.
func (f *tunnelFlags) parsePrefixes() error {
	for _, text := range f.learn {
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			return usagef("--learn %s: it is to be a prefix, such as 192.0.2.0/24", text)
		case p != p.Masked():
			return usagef("--learn %s: it is to be %s", text, p.Masked())
		}
		f.config.Learn = append(f.config.Learn, p)
	}
	return nil
}

// parseMark reads what packets outside are to be marked with.
func (f *tunnelFlags) parseMark() error {
	m := &f.config.Mark
	switch {
	case f.tos < 0 || f.tos > 0xff:
		return usagef("--tos %d is not in 0..255", f.tos)
	case f.tos&3 != 0:
		return usagef("--tos 0x%02x: the lower two bits are ECN, which is of --congestion and of "+
			"the datagrams inside: 0x%02x?", f.tos, f.tos&^3)
	case f.fixed() && f.config.Over == tunnel.OverNative:
		return usagef("--tos: packets over native have no traffic class, --priority is of their " +
			"VLAN tags")
	case m.Priority > 7:
		return usagef("--priority %d is not in 0..7", m.Priority)
	}
	m.Fixed, m.DSCP = f.fixed(), uint8(f.tos>>2)
	return nil
}

// parseGroup reads the group.
func (f *tunnelFlags) parseGroup() (err error) {
	if f.group == "" {
		return nil
	}
	f.config.Group, err = netip.ParseAddr(f.group)
	switch {
	case err != nil || !f.config.Group.IsMulticast():
		return usagef("--group %s: it is to be a multicast address, such as 239.192.0.1", f.group)
	case f.config.Over != tunnel.OverUD:
		return usagef("--group is of --over ud: a connection has one end, and native packets " +
			"go to stations")
	case f.tun != "":
		return usagef("--group is of a --tap: each packet of a TUN is for one peer")
	case f.key != "":
		return usagef("--group has no --key: keys are those of two ends, and with one of all " +
			"any member could forge what is another's")
	}
	return nil
}

// peersText says who the peers are.
func (f *tunnelFlags) peersText() string {
	text := fmt.Sprintf("%d peers", len(f.config.Peers))
	if len(f.learn) > 0 {
		text += fmt.Sprintf(" and up to %d of %s", f.config.Learned, strings.Join(f.learn, ", "))
	}
	if f.group != "" {
		text += ", group " + f.group
	}
	return text
}

// partition is the P_Key table of the device: the partition of the tunnel, and no other.
func (f *tunnelFlags) partition() roce.PKeyTable { return roce.PKeyTable{f.pkey} }

// spinBusy is a spin without an end.
const spinBusy = time.Duration(math.MaxInt64)

// poll has one thread do all the work, which saves the time that it takes to wake others. With
// several queues inside, or several drivers, there are background loops.
func (f *tunnelFlags) poll(o *engine.Options) {
	if f.inside.Queues > 1 || o.Drivers > 1 {
		return
	}
	if o.Busy {
		f.config.Spin = spinBusy
	}
	if len(o.CPUs) > 0 {
		f.config.CPU, o.CPUs = o.CPUs[0]+1, nil
	}
	f.inside.Polled, o.Direct, o.Busy = true, true, false
}

// chooseFormat finds the format, which has another name in connected mode.
func (f *tunnelFlags) chooseFormat() (err error) {
	name := f.format
	switch {
	case name != "":
	case f.config.Over == tunnel.OverNative:
		name = "raw"
	case f.inside.Kind == tunnel.TUN:
		name = "ipoib"
	default:
		name = "eoib"
	}
	if name == "ipoib" && f.config.Over != tunnel.OverUD {
		name = "ipoib-cm"
	}
	if f.config.Format, err = encap.ParseFormat(name); err != nil {
		return usageError{err}
	}
	return nil
}

// readKey reads a secret from a file that nobody but its owner can read.
func readKey(name string) (*tunnel.Key, error) {
	text, err := transfer.ReadToken(name)
	if err != nil {
		return nil, fmt.Errorf("--key: %w", userfile.Failed(err))
	}
	return tunnel.ParseKey(text)
}

// resolveTime bounds how long names may take.
const resolveTime = 10 * time.Second

// resolve finds the addresses of peers and what is routed to them.
func (f *tunnelFlags) resolve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	index := map[string]int{}
	for _, name := range f.peers {
		addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		if err != nil {
			return fmt.Errorf("--peer %s: %w", name, err)
		}
		index[name] = len(f.config.Peers)
		f.config.Peers = append(f.config.Peers, tunnel.Peer{Addr: addrs[0].Unmap()})
	}
	for _, route := range f.routes {
		text, name, _ := strings.Cut(route, "=")
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return usagef("--route %s: it is to be PREFIX=PEER: %v", route, err)
		}
		i, ok := index[name]
		if !ok {
			return usagef("--route %s: %q is no --peer", route, name)
		}
		f.config.Peers[i].Routes = append(f.config.Peers[i].Routes, prefix)
	}
	return nil
}

// dropsText lists what was dropped, "" for nothing.
func dropsText(drops map[string]uint64) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(drops)) {
		fmt.Fprintf(&b, ", %s %d", name, drops[name])
	}
	if b.Len() == 0 {
		return ""
	}
	return "; dropped:" + b.String()[1:]
}
