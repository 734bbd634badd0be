package main

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/message"
	"xroce/roce"
	"xroce/roce/msg"
)

// Words of flags, in the order of their values.
var (
	msgPolicies = []string{"first", "after", "never", "auto"}
	msgModes    = []string{"keep", "replace", "local"}
	msgLevels   = []string{"buffered", "transmitted", "delivered", "matched"}
)

// msgProtocols are the values of --protocol.
var msgProtocols = []string{
	msg.Auto.String(), msg.Eager.String(), msg.Get.String(), msg.Put.String(),
	msg.Fragments.String(), msg.Provisioned.String(),
}

// machineFlags say how messages are sent and how much is held for them.
type machineFlags struct {
	protocol, policy, mode               string
	eagerLimit, slots, largeSlots, after int
	rendezvous, unexpected               int
	pullWindow, chunk                    int
	registered                           int64
	patience, crowded, idle              time.Duration
	large                                []int
	anySize                              bool
}

func (f *machineFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.protocol, "protocol", msg.Auto.String(),
		"how messages travel: "+strings.Join(msgProtocols, ", "))
	flags.StringVar(&f.policy, "policy", msgPolicies[0],
		"when large slots are made: "+strings.Join(msgPolicies, ", "))
	flags.IntVar(&f.after, "after", 0, "messages before that, of --policy after")
	flags.IntVar(&f.eagerLimit, "eager-limit", 1024, "bytes of payload of a small slot")
	flags.IntVar(&f.slots, "slots", 32, "small slots that a peer gets, a power of 2")
	flags.IntSliceVar(&f.large, "large", nil, "sizes of large slots, rising (default "+
		"8192,32768,65536,196608)")
	flags.IntVar(&f.largeSlots, "large-slots", 4, "large slots that a peer gets")
	flags.StringVar(&f.mode, "large-mode", msgModes[0],
		"what large slots do to the small ones, or that the sender alone makes larger buffers: "+
			strings.Join(msgModes, ", "))
	flags.IntVar(&f.rendezvous, "rendezvous", 64, "messages that a peer may have announced")
	flags.IntVar(&f.unexpected, "unexpected", 1<<20,
		"bytes that are kept for a peer of messages without a receive")
	flags.Int64Var(&f.registered, "registered", 1<<30, "bytes of slots for all peers together")
	flags.IntVar(&f.pullWindow, "pull-window", 4<<20, "bytes that are asked for by READ at once")
	flags.IntVar(&f.chunk, "chunk", 256<<10, "bytes of one READ or WRITE")
	flags.DurationVar(&f.patience, "patience", time.Second,
		"how long a message waits for an answer to a request for large slots")
	flags.DurationVar(&f.crowded, "crowded", 10*time.Millisecond,
		"how long a message waits for a slot before it is announced")
	flags.DurationVar(&f.idle, "idle", 10*time.Second,
		"how long large slots stay that nobody uses")
	flags.BoolVar(&f.anySize, "any-size", false, "let slots be of any size")
}

// config is what the flags say; package roce/msg checks the sizes.
func (f *machineFlags) config() (msg.Config, error) {
	c := msg.Config{
		EagerLimit: f.eagerLimit, Slots: f.slots, LargeSlots: f.largeSlots, Large: f.large,
		AnySize: f.anySize, After: f.after,
		Rendezvous: f.rendezvous, Unexpected: f.unexpected, Registered: f.registered,
		PullWindow: f.pullWindow, Chunk: f.chunk, Patience: roce.Time(f.patience),
		Crowded: roce.Time(f.crowded), Idle: roce.Time(f.idle),
	}
	var err error
	if c.Protocol, err = msg.ParseProtocol(f.protocol); err != nil {
		return c, usagef("--protocol: %v", err)
	}
	policy := slices.Index(msgPolicies, f.policy)
	switch {
	case policy < 0:
		return c, usagef("--policy %q: there are %s", f.policy, words(msgPolicies))
	case f.after != 0 && msg.Policy(policy) != msg.EnlargeAfter:
		return c, usagef("--after is of --policy after")
	}
	c.Policy = msg.Policy(policy)
	mode := slices.Index(msgModes, f.mode)
	if mode < 0 {
		return c, usagef("--large-mode %q: there are %s", f.mode, words(msgModes))
	}
	c.Mode = msg.Mode(mode)
	for flag, value := range map[string]int64{ // of which 0 would be the default
		"--eager-limit": int64(f.eagerLimit), "--slots": int64(f.slots),
		"--large-slots": int64(f.largeSlots), "--rendezvous": int64(f.rendezvous),
		"--unexpected": int64(f.unexpected), "--registered": f.registered,
		"--pull-window": int64(f.pullWindow), "--chunk": int64(f.chunk),
	} {
		if value < 1 {
			return c, usagef("%s %d is less than 1", flag, value)
		}
	}
	for flag, value := range map[string]time.Duration{
		"--patience": f.patience, "--crowded": f.crowded, "--idle": f.idle,
	} {
		if value <= 0 {
			return c, usagef("%s %v is not more than 0", flag, value)
		}
	}
	return c, nil
}

// msgFlags are those of a test of messages.
type msgFlags struct {
	device  deviceFlags
	machine machineFlags
	config  message.Config
	iface   string
	level   string
	port    int
	events  bool
	alive   time.Duration
	grace   time.Duration
}

// msgPort is the port of rdma_cm at which a server waits.
const msgPort = 7480

func newMsgFlags(test message.Test) *msgFlags {
	f := &msgFlags{config: message.Config{Test: test, Size: 64, Iters: 1000, Reply: 64, Depth: 16}}
	if test == message.Stream {
		f.config.Size, f.config.Iters, f.config.Reply, f.config.Depth = 65536, 5000, 0, 128
	}
	return f
}

func (f *msgFlags) register(flags *pflag.FlagSet) {
	flags.StringVarP(&f.iface, "device", "d", "",
		"interface, or several with a comma between: a rail each (default: the only one)")
	flags.DurationVar(&f.grace, "grace", 0,
		"how long a connection of several rails waits for one when it has none")
	c := &f.config
	flags.IntVarP(&c.Size, "size", "s", c.Size, "bytes of a message")
	flags.IntVarP(&c.Iters, "iters", "n", c.Iters, "messages of the client over each connection")
	flags.IntVar(&c.Warmup, "warmup", 100, "messages before those that count")
	flags.IntVar(&c.Peers, "peers", 1, "connections")
	if c.Test == message.RPC {
		flags.IntVar(&c.Reply, "reply", c.Reply, "bytes of an answer")
	}
	if c.Test != message.Pingpong {
		flags.IntVar(&c.Depth, "depth", c.Depth, "messages under way at once over a connection")
	}
	if c.Test == message.Stream {
		flags.IntVarP(&c.PostList, "post-list", "l", c.PostList,
			"messages that are posted at once (default: a quarter of --depth)")
	}
	flags.StringVar(&f.level, "level", msgLevels[0],
		"when a message is complete: "+strings.Join(msgLevels, ", "))
	flags.BoolVar(&c.Unverified, "unverified", false, "do not compare what comes")
	flags.BoolVarP(&f.events, "events", "e", false, "sleep until something comes, not poll")
	flags.DurationVar(&f.alive, "keepalive", msgKeepalive,
		"after which silence a peer is asked whether it is there, 0 for never")
	flags.IntVarP(&f.port, "port", "p", msgPort, "port of the server")
	f.machine.register(flags)
	f.device.register(flags)
}

// interfaces are those of -d, one at least.
func (f *msgFlags) interfaces() []string { return strings.Split(f.iface, ",") }

// addresses fills in those of the server: of a client hosts, one for each interface.
func (f *msgFlags) addresses(ctx context.Context, c *message.Config, hosts []string) error {
	interfaces := f.interfaces()
	if len(interfaces) > msg.MaxRails {
		return usagef("-d %s: at most %d interfaces", f.iface, msg.MaxRails)
	}
	for i, name := range interfaces {
		if slices.Contains(interfaces[:i], name) {
			return usagef("-d %s: %q twice", f.iface, name)
		}
		if name == "" && len(interfaces) > 1 {
			return usagef("-d %s: an interface without a name", f.iface)
		}
	}
	if c.Server {
		hosts = slices.Repeat([]string{anywhere}, len(interfaces))
	}
	if len(hosts) != len(interfaces) {
		return usagef("%s for %s: want an address of the server for each",
			counted(len(hosts), "HOST"), counted(len(interfaces), "interface"))
	}
	var at []netip.AddrPort
	for _, host := range hosts {
		to, err := addressOf(ctx, host, f.port)
		if err != nil {
			return err
		}
		at = append(at, to)
	}
	c.Addr, c.Further = at[0], at[1:]
	return nil
}

// test is what the flags say.
func (f *msgFlags) test() (message.Config, msg.Config, error) {
	c := f.config
	if c.Test == message.Pingpong {
		c.Reply = c.Size
	}
	level := slices.Index(msgLevels, f.level)
	if level < 0 {
		return c, msg.Config{}, usagef("--level %q: there are %s", f.level, words(msgLevels))
	}
	c.Level = msg.Level(level)
	machine, err := f.machine.config()
	if err != nil {
		return c, machine, err
	}
	switch machine.Keepalive = roce.Time(f.alive); {
	case f.alive < 0:
		return c, machine, usagef("--keepalive %v is negative", f.alive)
	case f.alive == 0:
		machine.Keepalive = -1
	}
	if machine.Grace = roce.Time(f.grace); f.grace < 0 {
		return c, machine, usagef("--grace %v is negative", f.grace)
	}
	c.Protocol = machine.Protocol
	if err := c.Check(); err != nil {
		return c, machine, usagef("%v", err)
	}
	return c, machine, nil
}
