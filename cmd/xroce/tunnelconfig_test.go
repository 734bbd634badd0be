package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"xroce/engine"
)

// tunnelFlagSet are the flags of the command.
func tunnelFlagSet() (*tunnelFlags, *pflag.FlagSet) {
	f, flags := newTunnelFlags(), pflag.NewFlagSet("tunnel", pflag.ContinueOnError)
	f.register(flags)
	return f, flags
}

// readText is readConfig of a file named f that says it.
func readText(t *testing.T, text string, flags *pflag.FlagSet) error {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readConfig(name, flags)
}

func TestTunnelConfig(t *testing.T) {
	f, flags := tunnelFlagSet()
	if err := flags.Parse([]string{"--tap", "tap9", "--segment", "3"}); err != nil {
		t.Fatal(err)
	}
	err := readText(t, `# a site
device = eth1   # that one
tap = tap0
segment=7
peer = 192.0.2.2
peer = 192.0.2.3
mtu = 1400
learn = 192.0.2.0/24
learn = fd00::/8
learn-max = 5
group = 239.192.0.1
learn-idle = 90s
`, flags)
	if err != nil {
		t.Fatal(err)
	}
	if f.iface != "eth1" || f.tap != "tap9" || f.config.Segment != 3 || f.inside.MTU != 1400 ||
		!slices.Equal(f.peers, []string{"192.0.2.2", "192.0.2.3"}) ||
		!slices.Equal(f.learn, []string{"192.0.2.0/24", "fd00::/8"}) || f.config.Learned != 5 ||
		f.group != "239.192.0.1" ||
		f.config.LearnIdle != 90*time.Second {
		t.Errorf("%+v", f)
	}
}

// TestTunnelConfigRefused: what is wrong is told with its line.
func TestTunnelConfigRefused(t *testing.T) {
	for text, want := range map[string]string{
		"device = a\ntapp = b":           `f:2: unknown word "tapp"`,
		"\n\nconfig = other":             `f:3: unknown word "config"`,
		"peer":                           `f:1: "peer" is not NAME = VALUE`,
		"mtu = many":                     `f:1: `,
		strings.Repeat("#\n", 1<<13):     "more than 4096 lines",
		strings.Repeat("x", 1<<13):       "f:1: ",
		"segment = 70000":                "f:1: ",
		"a = b\x00\x1b":                  `unknown word "a"`,
		" = b":                           `f:1: unknown word ""`,
		"help = true":                    `unknown word "help"`,
		"device = eth0\npeer = x\nmtu 3": `f:3: "mtu 3" is not`,
	} {
		_, flags := tunnelFlagSet()
		err := readText(t, text, flags)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	_, flags := tunnelFlagSet()
	err := readText(t, "x = y", flags)
	var usage usageError
	if !errors.As(err, &usage) {
		t.Errorf("%v is no mistake of the user", err)
	}
}

// TestTunnelRefused: flags that make no tunnel end with 2 and say why.
func TestTunnelRefused(t *testing.T) {
	for args, want := range map[string]string{
		"":                                 "either --tap NAME or --tun NAME",
		"--tap a --tun b --peer 192.0.2.1": "either --tap NAME or --tun NAME",
		"--tap a":                          "--peer is needed",
		"--tap a --peer 192.0.2.1 --group 192.0.2.9":            "it is to be a multicast address",
		"--tap a --peer 192.0.2.1 --group all":                  "it is to be a multicast address",
		"--tap a --peer 192.0.2.1 --group 239.1.1.1 --over rc":  "--group is of --over ud",
		"--tun a --peer 192.0.2.1 --group 239.1.1.1":            "--group is of a --tap",
		"--tap a --learn all":                                   "it is to be a prefix",
		"--tap a --learn 192.0.2.1/24":                          "it is to be 192.0.2.0/24",
		"--tap a --learn 192.0.2.0/24 --learn-max 0":            "--learn-max is to be 1 or more",
		"--tap a --learn 192.0.2.0/24 --learn-idle 0":           "--learn-idle longer than",
		"--tap a --peer 192.0.2.1 --over tcp":                   "there are ud, rc, uc and native",
		"--tap a --peer 192.0.2.1 --pkey 0x8000":                "--pkey 0x8000 is of no partition",
		"--tap a --peer 192.0.2.1 --over native --key k":        "--over native has no --key",
		"--tap a --peer 192.0.2.1 --tos 256":                    "--tos 256 is not in 0..255",
		"--tap a --peer 192.0.2.1 --tos 0xb9":                   "0xb8?",
		"--tap a --peer 192.0.2.1 --over native --tos 0":        "have no traffic class",
		"--tap a --peer 192.0.2.1 --priority 8":                 "--priority 8 is not in 0..7",
		"--tun a --peer 192.0.2.1 --suppress":                   "--suppress is of a --tap",
		"--tap a --peer 192.0.2.1 --format gre":                 "there are raw, raw6, ",
		"--tun a --peer 192.0.2.1 --route 10.0.0.0/8=192.0.2.9": "is no --peer",
		"--tun a --peer 192.0.2.1 --route ten=192.0.2.1":        "PREFIX=PEER",
	} {
		f, flags := tunnelFlagSet()
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := f.check(t.Context())
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// TestTunnelDrivers: one thread does all the work unless others are asked for, which a device in
// direct mode does not have.
func TestTunnelDrivers(t *testing.T) {
	for _, c := range []struct {
		inside, drivers int
		direct          bool
	}{{1, 1, true}, {2, 1, false}, {1, 2, false}} {
		f, _ := tunnelFlagSet()
		f.inside.Queues = c.inside
		o := engine.Options{Drivers: c.drivers, CPUs: []int{0}}
		f.poll(&o)
		if o.Direct != c.direct || f.inside.Polled != c.direct || (f.config.CPU == 1) != c.direct ||
			(o.CPUs == nil) != c.direct {
			t.Errorf("%+v: %+v, CPU %d", c, o, f.config.CPU)
		}
	}
}
