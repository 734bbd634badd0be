package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xroce/cmd/xroce/internal/demo"
	"xroce/roce/wire"
)

// quick makes the demonstration short.
var quick = []string{"demo", "--sim", "--time", "2ms", "--file-size", "3000000"}

func TestDemoOnTheSimulatedWire(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "demo.pcapng")
	i := bench{machine: goodMachine()}.run(t, append(quick, "--capture", file)...)
	if i.code != exitOK || !i.quiet() {
		t.Fatalf("code %d, stderr %s\n%s", i.code, i.stderr, i.stdout)
	}
	lines := strings.Split(strings.TrimSpace(i.stdout), "\n")
	wire := strings.Join(lines[:3], " ")
	contains(t, wire, "wire: ", "simulated", "backend sim", "MTU 4200", "path MTU 4096",
		"(asked for)")
	if last := lines[len(lines)-1]; last != demoPassed {
		t.Errorf("last line: %s", last)
	}
	contains(t, i.stdout, "SEND_WITH_IMM ", "RDMA_WRITE_WITH_IMM ", "RDMA_READ ", "1048576",
		"ATOMIC_FETCH_AND_ADD ", "packets in "+file, "\nRC ", "\natomics ", "\nkeys ", "\nlayouts ",
		"\nUC ", "\nUD ", "\nSRQ ", "\nXRC ", "\nmessages ", "\nencap ", "\ngo-back-N ",
		"\nselective repeat ")
	for _, picture := range messagePicture {
		contains(t, i.stdout, picture)
	}
	contains(t, i.stdout, "an Ethernet frame of 61 bytes in format raw:\n",
		"lrh.vl=0 lver=0 sl=0 lnh=0 dlid=0x0002 pktlen=19 slid=0x0001\n",
		" rwh.etype=0x6558 pad=3\n", "\n           VCRC ")
	judgeByTshark(t, file)
}

// messagePicture is what the capture has of messages. The IDs of operations are those of the
// first of a connection.
var messagePicture = []string{
	`
  eager, 64 bytes: fits a slot
    --> FRAME class=0 slot=0; EAGER len=64
  eager, told when received, 64 bytes: fits a slot
    --> FRAME class=0 slot=0; EAGER SYNC len=64
    <-- MATCHED frame=0 record=0
  provisioned, 20000 bytes: longer than the threshold: a large slot is made
    --> PROVISION_REQ class=2 epoch=1 slots=4 need=33048
    <-- PROVISION_ACK class=2 epoch=1 slots=4 size=33048
    --> FRAME class=2 slot=0; EAGER len=20000
  provisioned, 20000 bytes: fits the large slot that is there
    --> FRAME class=2 slot=1; EAGER len=20000
  get, 262144 bytes: longer than the largest slot
    --> RTS GET id=1025 len=262144
    <-- READ id=1025 len=262144
    --> READ_RESPONSE len=262144
    <-- ATS id=1025 ok len=262144
  put, 262144 bytes: forced
    --> RTS PUT id=1025 len=262144
    <-- RTR id=1025 offset=0 len=262144
    --> WRITE id=1025 len=262144
    --> ATP id=1025 offset=0 len=262144
    <-- ATS id=1025 ok len=262144
  fragments, 2000 bytes: forced
    --> RTS id=1025 len=2000
    <-- CTS id=1025 limit=2000
    --> FRAME class=0 slot=0; FRAGMENT offset=0 len=1024
    --> FRAME class=0 slot=1; FRAGMENT offset=1024 len=976
    <-- ATS id=1025 ok len=2000
  closing
`,
	"    --> REQ HELLO payload=1024 slots=32 rendezvous=64\n",
	"    <-- REP HELLO payload=1024 slots=32 rendezvous=64\n",
	"    <-- ADVERT class=0 epoch=0 slots=32 size=1064\n",
	"    --> ADVERT_ACK class=0 epoch=0\n",
	"    --> FIN\n",
}

// demoPassed is the last line when everything that is shown works.
const demoPassed = "demo: 789 passed, 0 failed"

// unknownToTshark are the opcodes that tshark 4.0 does not know: FLUSH, ATOMIC WRITE
// and all of XRC. It shows their BTH and no more.
func unknownToTshark(op int) bool { return op == 0x1c || op == 0x1d || op>>5 == 5 }

// judgeByTshark lets Wireshark's dissector read the capture: every packet is InfiniBand, or
// a native one behind an Ethernet header, and none is malformed. RPC over RDMA is off: tshark
// 4.0 reads eight bytes of any SEND, also of one byte.
func judgeByTshark(t *testing.T, file string) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Log("tshark is not installed: its judgement is missing")
		return
	}
	args := []string{
		"-r", file, "--disable-protocol", "rpcordma", "-T", "fields", "-e", "frame.protocols",
		"-e", "_ws.malformed", "-e", "infiniband.invariant.crc", "-e", "infiniband.bth.opcode",
	}
	var stderr bytes.Buffer
	cmd := exec.Command(tshark, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	packets := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(packets) < 1000 {
		t.Errorf("tshark sees %d packets", len(packets))
	}
	opcodes := map[int]bool{}
	native := 0
	for n, line := range packets {
		f := strings.Split(line, "\t")
		if f[0] == "eth:ethertype:data" && f[1] == "" {
			native++ // it knows no native packets on Ethernet
			continue
		}
		op, err := strconv.Atoi(f[3])
		if !strings.Contains(f[0], ":infiniband") || f[1] != "" || err != nil ||
			!strings.HasPrefix(f[2], "0x") && !unknownToTshark(op) {
			t.Errorf("packet %d: tshark sees %q", n+1, line)
		}
		opcodes[op] = true
	}
	if native != 15 {
		t.Errorf("tshark sees %d native packets", native)
	}
	for _, op := range []wire.Opcode{
		wire.RCSendOnlyInv, wire.RCFetchAdd, wire.RCCmpSwap, wire.RCAtomicWrite, wire.RCFlush,
		wire.UCSendMiddle, wire.UCWriteOnlyImm, wire.UDSendOnly, wire.UDSendOnlyImm,
		wire.XRCSendOnly, wire.XRCReadRespOnly,
	} {
		if !opcodes[int(op)] {
			t.Errorf("tshark sees no %s", op)
		}
	}
}

// TestDemoNowhere: where the packets cannot be kept nothing is said to have passed.
func TestDemoNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "missing", "demo.pcapng")
	i := bench{machine: goodMachine()}.run(t, append(quick, "--capture", file)...)
	if i.code != exitFailure || i.stdout != "" || !strings.Contains(i.stderr, file) {
		t.Errorf("code %d, %q, %q", i.code, i.stdout, i.stderr)
	}
}

func TestDemoJSON(t *testing.T) {
	t.Parallel()
	i := bench{machine: goodMachine()}.run(t, append(quick, "--json", "--size", "5000")...)
	var r demo.Report
	if err := json.Unmarshal([]byte(i.stdout), &r); err != nil {
		t.Fatalf("%v in %s %s", err, i.stdout, i.stderr)
	}
	if i.code != exitOK || r.Failed != 0 || len(r.Rows) != 6 || r.Wire.Backend != "sim" ||
		r.Copy.Bytes < 3000000 || len(r.Scenes) != 12 || len(r.Loss) != 2 {
		t.Fatalf("code %d, %+v, %s", i.code, r, i.stderr)
	}
	checks := 0
	for _, s := range r.Scenes {
		if s.Checks == 0 || s.What == "" {
			t.Errorf("%+v", s)
		}
		checks += s.Checks
	}
	if checks == 0 || r.Passed <= checks {
		t.Errorf("%d checks passed, the scenes have %d", r.Passed, checks)
	}
	if n := len(r.Messages); n != 9 || r.Messages[0].What != "connecting" ||
		r.Messages[n-1].What != "closing" || r.Messages[1].Protocol != "eager" {
		t.Errorf("messages: %+v", r.Messages)
	}
	for _, m := range r.Messages {
		for _, l := range m.Lines {
			if l.Text == "" || len(l.Full) < len(l.Text) || l.From != 0 && l.From != 1 {
				t.Errorf("%s: %+v", m.What, l)
			}
		}
	}
	for _, l := range r.Loss {
		if l.Bytes != 3000000 || l.Lost == 0 || l.Retransmits == 0 || l.Frames < 3000000/4096 ||
			l.Share != 0.05 || l.Tries < 1 || len(l.SHA256) != 64 || l.SHA256 != r.Loss[0].SHA256 {
			t.Errorf("%+v", l)
		}
	}
	// Go-back-N sends a window again for each loss, selective repeat little more
	// than what was lost.
	if n, s := r.Loss[0].Retransmits, r.Loss[1].Retransmits; s >= n {
		t.Errorf("go-back-N sent %d packets again, selective repeat %d", n, s)
	}
	for _, row := range r.Rows {
		atomic := row.Operation == "ATOMIC_FETCH_AND_ADD" && row.Size == 8
		if row.Size != 5000 && !atomic || row.Messages <= 0 || row.Gigabits <= 0 ||
			row.Microseconds <= 0 {
			t.Errorf("%+v", row)
		}
	}
}

func TestDemoRefusesAsavie(t *testing.T) {
	i := bench{machine: goodMachine()}.run(t, "demo", "--backend", "asavie")
	if i.code != exitUsage || i.stdout != "" {
		t.Errorf("code %d, %s", i.code, i.stdout)
	}
	contains(t, i.stderr, "backend asavie")
}

// TestDemoInterrupted interrupts each stage: the summary is printed and nothing
// is left.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for _, stage := range []demo.Stage{
		demo.StageOperations, demo.StageCopy, demo.StageLoss, demo.StageMeasure,
	} {
		dir := t.TempDir()
		var i *invocation
		ready := make(chan struct{})
		b := bench{machine: goodMachine(), change: func(a *app) {
			a.demoDir = dir
			a.demoHook = func(s demo.Stage) {
				if s == stage {
					<-ready
					i.cancel()
				}
			}
		}}
		i = b.start(t, quick...)
		close(ready)
		if i.wait(t); i.code != exitInterrupted {
			t.Errorf("%s: code %d, %s", stage, i.code, i.stderr)
		}
		contains(t, i.stdout, "demo: ", " passed, 0 failed")
		contains(t, i.stderr, "interrupted")
		onlyFiles(t, dir)
	}
}

func TestDemoPanicLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		hook := func(s demo.Stage) {
			if s == demo.StageCopy {
				panic("at the worst moment")
			}
		}
		_, _ = demo.Run(t.Context(), demo.Options{
			Simulated: true, FileSize: 1, Dir: dir, Hook: hook,
		})
	}()
	onlyFiles(t, dir)
}

func TestDemoKeeps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := bench{machine: goodMachine(), change: func(a *app) { a.demoDir = dir }}
	i := b.run(t, append(quick, "--keep", "--size", "64")...)
	if i.code != exitOK {
		t.Fatal(i.stderr, i.stdout)
	}
	contains(t, i.stdout, "to remove it:\n  rm -r "+dir)
	found, err := filepath.Glob(filepath.Join(dir, "xroce-demo-*", "demo.pcapng"))
	if err != nil || len(found) != 1 {
		t.Errorf("kept %q, %v", found, err)
	}
}

// TestDemoFindsDamage damages the capture before it is read back.
func TestDemoFindsDamage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "demo.pcapng")
	for name, damage := range map[string]func([]byte) []byte{
		"wrong ICRC": func(b []byte) []byte {
			// The payload of the first packet, behind Ethernet, IPv4, UDP and BTH.
			b[bytes.Index(b, []byte{0x08, 0x00, 0x45})+2+20+8+12] ^= 1
			return b
		},
		"incomplete": func(b []byte) []byte { return b[:len(b)*2/3] },
		"empty":      func(b []byte) []byte { return b[:0] },
	} {
		b := bench{machine: goodMachine(), change: func(a *app) {
			a.demoHook = func(s demo.Stage) {
				if s != demo.StageCapture {
					return
				}
				content, err := os.ReadFile(file)
				if err == nil {
					err = os.WriteFile(file, damage(content), 0o600)
				}
				if err != nil {
					t.Error(err)
				}
			}
		}}
		i := b.run(t, append(quick, "--capture", file)...)
		if i.code != exitFailure {
			t.Errorf("%s: code %d\n%s", name, i.code, i.stdout)
		}
		if name == "wrong ICRC" {
			contains(t, i.stdout, "FAILED: ", "wrong ICRC", " 1 failed")
		}
	}
}
