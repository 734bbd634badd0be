package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/traffic"
)

// TestTrafficCommandLines: what cannot be sent or collected is refused before any interface is
// opened.
func TestTrafficCommandLines(t *testing.T) {
	b, _ := simBench(t)
	for line, want := range map[string]string{
		"pktgen":                                                    "-d: name the interface",
		"pktgen -d xr1":                                             "--to: name the host",
		"pktgen -d xr1 --to h --rate x":                             "is no rate",
		"pktgen -d xr1 --to h --rate 5%":                            "give it with --line-rate",
		"pktgen -d xr1 --to h --xsk-mode x":                         "no XSK mode",
		"pktgen -d xr1 --to h --queue -1":                           "negative",
		"pktgen -d xr1 --to h --batch 0":                            "--batch 0",
		"pktgen -d xr1 --to h --batch 1025":                         "--batch 1025",
		"pktgen -d xr1 --to h --transmit x":                         `no --transmit "x"`,
		"pktgen -d xr1 --to h --burst 0":                            "--burst 0",
		"pktgen -d xr1 --to h --flows 0":                            "--flows 0",
		"pktgen -d xr1 --to h -i -1":                                "-i -1",
		"pktgen -d xr1 --to h -i 1 --json":                          "--json one document",
		"pktgen -d xr1 --to h --stateful --kind roce --format eoib": "in no other",
		"pktgen -d xr1 --to h --queues 0":                           "--queues 0",
		"pktgen -d xr1 --to h --queues 2 --rfc2544":                 "are sent on one",
		"sink -d xr1 --queue -2":                                    "--queue -2",
		"sink -d xr1 --format nobody":                               "nobody",
		"sink -d xr1 --format ipoib-cm":                             "of connections",
		"pktgen -d xr1 --to h --duration 0s":                        "--duration 0s",
		"pktgen -d xr1 --to h --duration -1s":                       "--duration -1s",
		"pktgen -d xr1 --to h --max-loss x":                         "no percentage",
		"pktgen -d xr1 --to h --rate 1kpps..2kpps":                  "no duration",
		"pktgen -d xr1 --to h --size 64 -f x":                       "--size and --scenario",
		"pktgen -d xr1 --to h -f testdata/bad.yaml":                 `there is no word "speed"`,
		"pktgen x":                                    "unknown",
		"sink":                                        "-d: name the interface",
		"sink -d xr1 --xsk-mode x":                    "no XSK mode",
		"sink -d xr1 --xdp-mode x":                    "no XDP mode",
		"sink -d xr1 --queue -1":                      "negative",
		"sink -d xr1 --port 70000":                    "--port 70000",
		"sink -d xr1 --ethertype 5":                   "--ethertype 0x5",
		"sink -d xr1 --ethertype x":                   `"x" is no number`,
		"sink -d xr1 --duration -1s":                  "--duration -1s",
		"sink -d xr1 --max-loss 101":                  "no percentage",
		"sink -d xr1 -i 1 --json":                     "--json one document",
		"fuzz -d xr1":                                 "accepts 1 arg",
		"pktgen -d xr1 --to h --plot x":               "--plot is for",
		"pktgen -d xr1 --to h --rfc2544 --rate 1kpps": "--rate and --rfc2544",
		"fuzz h":                           "-d: name the interface",
		"fuzz -d xr1 --rate x h":           "is no rate",
		"fuzz -d xr1 -n 0 h":               "-n 0",
		"fuzz -d xr1 --wait 1h h":          "--wait 1h",
		"fuzz -d xr1 --dest-qp 16777216 h": "24 bits",
		"fuzz -d xr1 --queue -1 h":         "negative",
	} {
		i := b.run(t, strings.Fields(line)...)
		if i.code != exitUsage || i.stdout != "" {
			t.Errorf("%s: code %d, stdout %q", line, i.code, i.stdout)
		}
		contains(t, i.stderr, want)
	}
	if i := b.run(t, "sink", "-d", "none"); i.code != exitFailure {
		t.Errorf("no interface: code %d, %s", i.code, i.stderr)
	}
}

// TestTransmitChoice: live frames are for many frames a second, and for who asks for them.
func TestTransmitChoice(t *testing.T) {
	for line, want := range map[string]traffic.Transmit{
		"":                                  traffic.ByEither,
		"--rate max":                        traffic.ByEither,
		"--rate 0.4mpps":                    traffic.BySocket,
		"--rate 0.4mpps --transmit xdp":     traffic.ByXDP,
		"--rate 500kpps":                    traffic.ByEither,
		"--rate 1kpps..2mpps --duration 1s": traffic.ByEither,
		"--rate 1gbps":                      traffic.ByEither,
		"--rate 1gbps --size imix":          traffic.BySocket,
		"--rate 50% --line-rate 100gbps --size 1514": traffic.ByEither,
		"--rate 5% --line-rate 100gbps --size 1514":  traffic.BySocket,
		"--transmit socket":                          traffic.BySocket,
		"--rfc2544":                                  traffic.BySocket,
		"--rfc2544 --transmit xdp":                   traffic.ByXDP,
		"--stateful --kind roce":                     traffic.BySocket,
		"--replay x":                                 traffic.BySocket,
		"--rfc2544 --kind roce --opcodes RC_READ_REQUEST,RC_SEND_ONLY": traffic.BySocket,
		"--replay x --xsk-mode copy --capture c.pcapng --metrics 9400": traffic.BySocket,
		"--replay x --speed max":                         traffic.ByEither,
		"--scenario testdata/scenarios/write-burst.yaml": traffic.BySocket,
	} {
		var f pktgenFlags
		flags := pflag.NewFlagSet("pktgen", pflag.ContinueOnError)
		f.register(flags)
		if err := flags.Parse(strings.Fields("-d xr1 --to h " + line)); err != nil {
			t.Fatal(err)
		}
		if err := f.check(flags, &app{}); err != nil {
			t.Errorf("%s: %v", line, err)
		} else if f.port.Transmit != want {
			t.Errorf("%s: %v, want %v", line, f.port.Transmit, want)
		}
	}
}

// TestReplayKeepsItsFile: a capture is not written over the one that is replayed, by whatever name.
func TestReplayKeepsItsFile(t *testing.T) {
	b, _ := simBench(t)
	text, err := os.ReadFile("../../roce/wire/testdata/captures/rc_write_v4.pcap")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.pcap"), filepath.Join(dir, "b.pcap")
	if err := errors.Join(os.WriteFile(file, text, 0o600), os.Link(file, link)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{file, link, filepath.Join(dir, ".", "a.pcap")} {
		i := b.run(t, "pktgen", "-d", "xr1", "--to", "h", "--replay", file, "--capture", to)
		if i.code != exitUsage {
			t.Errorf("%s: code %d", to, i.code)
		}
		contains(t, i.stderr, "is the capture that is sent")
	}
	stdin, err := os.Open(link)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if a := (&app{stdin: stdin}); !a.reads(&captureInput{}, file) || a.reads(&captureInput{}, "") ||
		a.reads(&captureInput{}, filepath.Join(dir, "new.pcap")) {
		t.Error("what stdin is was not seen")
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the file has %d bytes, and had %d: %v", len(now), len(text), err)
	}
}

// TestFlagsBesideExist: the flags that go with --replay and --scenario are flags.
func TestFlagsBesideExist(t *testing.T) {
	flags := newApp(io.Discard, io.Discard).pktgenCommand().Flags()
	for _, list := range []map[string]bool{besideReplay, besideScenario} {
		for name := range list {
			if flags.Lookup(name) == nil && !inherited[name] {
				t.Errorf("there is no --%s", name)
			}
		}
	}
	for _, name := range []string{"xsk-mode", "capture", "metrics"} {
		if !besideReplay[name] {
			t.Errorf("--%s does not go with --replay", name)
		}
	}
}

// inherited are the flags that all commands have.
var inherited = map[string]bool{"json": true, "verbose": true, "log-format": true}

// TestPktgenRefused: what cannot be sent, or not be counted by any sink, is refused at once: also
// where it would be found out behind the first trial, or be cut.
func TestPktgenRefused(t *testing.T) {
	b, _ := simBench(t)
	for line, want := range map[string]string{
		"--rate 1kpps..max --duration 1s":                     "from a number to a number",
		"--rfc2544 --kind pfc":                                "--rfc2544: a sink can",
		"--rfc2544 --kind roce --opcodes RC_READ_REQUEST":     "a sink can count none",
		"--max-loss 1 --kind roce --opcodes CNP,rc_fetch_add": "--max-loss: a sink can",
		"--replay x --vlan 4097":                              "VLAN 4097",
		"--replay x --priority 8":                             "priority 8",
		"--replay x --size 64":                                "--size and --replay",
	} {
		i := b.run(t, strings.Fields("pktgen -d xr1 --to h "+line)...)
		if i.code != exitUsage || i.stdout != "" {
			t.Errorf("%s: code %d, stdout %q", line, i.code, i.stdout)
		}
		contains(t, i.stderr, want)
	}
}

// TestAnswerTypes: who sends RoCE v1 is answered so, and nobody else takes that from the kernel.
func TestAnswerTypes(t *testing.T) {
	p := traffic.Plan{Flows: make([]traffic.PlanFlow, 2)}
	if types := answerTypes(&p); len(types) > 0 {
		t.Errorf("%#x for RoCE v2", types)
	}
	p.Flows[1].RoCE.V1 = true
	if types := answerTypes(&p); !slices.Equal(types, []uint16{0x8915}) {
		t.Errorf("%#x", types)
	}
}
