package bpf

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// requireXDP skips, or fails when root tests are demanded, where the program
// cannot be loaded.
func requireXDP(t testing.TB) {
	t.Helper()
	support, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	if support.Load {
		return
	}
	if os.Getenv("XROCE_ROOT_TESTS") == "1" {
		t.Fatalf("XDP programs cannot be loaded: %v", support.Cause)
	}
	t.Skipf("XDP programs cannot be loaded: %v", support.Cause)
}

// loadProgram loads the program, attached to nothing, and returns it with one user.
func loadProgram(t testing.TB) *Program {
	t.Helper()
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{owners: map[Key]int{}, reader: countReader{perCPU: make([]Count, cpus)}}
	if err := load(&p.objs, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.objs.Close() })
	return p.newUser()
}

// loadOwning loads the program and makes it own the keys of the fixtures, IP addresses first:
// those are in its array, MAC addresses are not.
func loadOwning(t testing.TB) *xdpObjects {
	t.Helper()
	p := loadProgram(t)
	for _, k := range slices.SortedFunc(maps.Keys(ownedKeys()), compareKeys) {
		if err := p.Own(k); err != nil {
			t.Fatal(err)
		}
	}
	return &p.objs
}

// compareKeys orders keys by kind and address.
func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), bytes.Compare(a.Addr[:], b.Addr[:]))
}

// addSocket puts an AF_XDP socket into slot 0. Not bound to a queue it gets no
// packet, but the program cannot see that.
func addSocket(t testing.TB, objs *xdpObjects) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("AF_XDP socket: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := objs.Xsks.Put(uint32(0), uint32(fd)); err != nil {
		t.Fatal(err)
	}
}

// countOf reads one counter.
func countOf(t testing.TB, objs *xdpObjects, r Reason) Count {
	t.Helper()
	var perCPU []Count
	if err := objs.Counters.Lookup(uint32(r), &perCPU); err != nil {
		t.Fatal(err)
	}
	var sum Count
	for _, c := range perCPU {
		sum.Packets += c.Packets
		sum.Bytes += c.Bytes
	}
	return sum
}

// xdpMD is struct xdp_md: what a test run may say about the packet.
type xdpMD struct{ Data, DataEnd, DataMeta, Ifindex, Queue, Egress uint32 }

// runOnce runs the program on a frame. linear is how much of the frame is in
// the linear part, -1 for what the kernel finds right.
func runOnce(objs *xdpObjects, frame []byte, linear int) (Verdict, error) {
	opts := &ebpf.RunOptions{Data: frame}
	if linear >= 0 {
		opts.Context = xdpMD{DataEnd: uint32(linear)}
	}
	verdict, err := objs.Xroce.Run(opts)
	return Verdict(verdict), err
}

// judge runs the program once and checks verdict, reason and byte count. The
// kernel takes no frame without a whole Ethernet header: true if it was run.
func judge(t testing.TB, objs *xdpObjects, frame []byte, linear int, v Verdict, r Reason) bool {
	t.Helper()
	if len(frame) < ethLen {
		return false
	}
	before := countOf(t, objs, r)
	verdict, err := runOnce(objs, frame, linear)
	if err != nil {
		t.Fatalf("run on %d bytes, %d linear: %v", len(frame), linear, err)
	}
	after := countOf(t, objs, r)
	want := Count{before.Packets + 1, before.Bytes + uint64(len(frame))}
	if verdict != v || after != want {
		t.Errorf("%d bytes, %d linear: kernel says %v, count of %v %+v, want %v, %+v\n%x",
			len(frame), linear, verdict, r, after, v, want, frame[:min(len(frame), 100)])
	}
	return true
}

// kernelOracle returns a function that compares a decision with the kernel's,
// nil where the program cannot be loaded.
func kernelOracle(t testing.TB) func(testing.TB, []byte, Verdict, Reason) {
	if support, err := Probe(); err != nil || !support.Load {
		return nil
	}
	objs := loadOwning(t)
	addSocket(t, objs)
	return func(t testing.TB, frame []byte, v Verdict, r Reason) {
		if len(frame) <= 32<<10 {
			judge(t, objs, frame, -1, v, r)
		}
	}
}

func TestKernelVerdicts(t *testing.T) {
	requireXDP(t)
	objs := loadOwning(t)

	// Without a socket everything passes.
	for _, f := range fixtures() {
		reason := f.reason
		if reason.Verdict() == Redirect {
			reason = PassNoSocket
		}
		judge(t, objs, f.frame, -1, Pass, reason)
	}
	addSocket(t, objs)
	for _, f := range fixtures() {
		ran := judge(t, objs, f.frame, -1, f.reason.Verdict(), f.reason)
		if t.Failed() {
			t.Fatalf("%s: %s", f.name, f.why)
		}
		if !ran && !strings.HasPrefix(f.name, "cut_e") {
			t.Errorf("%s: too short to be run", f.name)
		}
	}
	if err := objs.Owned.Delete(V1Key(ownMAC)); err != nil {
		t.Fatal(err)
	}
	judge(t, objs, ether(ownMAC, ethPIBoE), -1, Pass, PassNotOurs)
	if err := objs.Xsks.Delete(uint32(0)); err != nil {
		t.Fatal(err)
	}
	judge(t, objs, udp4(ownIPv4), -1, Pass, PassNoSocket)
}

// Headers may lie in the fragments of a multi-buffer packet, all or in part.
func TestKernelSplitHeaders(t *testing.T) {
	requireXDP(t)
	objs := loadOwning(t)
	addSocket(t, objs)
	if _, err := runOnce(objs, udp4(ownIPv4), 20); errors.Is(err, unix.EINVAL) {
		t.Skip("this kernel (before 6.18) cannot choose the linear part of a test packet")
	} else if err != nil {
		t.Fatal(err)
	}
	for _, f := range fixtures() {
		for linear := range min(len(f.frame), 100) {
			judge(t, objs, f.frame, linear, f.reason.Verdict(), f.reason)
		}
	}
}

// mutate makes a frame that is mostly like a fixture: random bytes replaced,
// preferably in the headers and by values that mean something there.
func mutate(rng *rand.Rand, base []byte) []byte {
	b := append(make([]byte, 0, len(base)+16), base...)
	special := []byte{
		0, 1, 4, 5, 6, 7, 8, 15, 17, 20, 43, 44, 45, 0x40, 0x44, 0x45, 0x4f, 0x60,
		0x81, 0x88, 0xa8, 0x86, 0xdd, 0x15, 0x89, 0xb5, 0x12, 0xb7, 0xff,
	}
	for range rng.IntN(4) {
		if len(b) == 0 {
			break
		}
		value := byte(rng.Uint32())
		if rng.IntN(3) > 0 {
			value = special[rng.IntN(len(special))]
		}
		at := rng.IntN(len(b))
		if rng.IntN(4) > 0 {
			at = rng.IntN(min(len(b), 90))
		}
		b[at] = value
	}
	switch rng.IntN(6) {
	case 0:
		b = b[:rng.IntN(len(b)+1)]
	case 1:
		b = append(b, make([]byte, rng.IntN(16))...)
	case 2: // one tag more
		if len(b) >= 14 {
			tpid := [][]byte{{0x81, 0}, {0x88, 0xa8}}[rng.IntN(2)]
			b = cat(b[:12], tpid, []byte{0, 5}, b[12:])
		}
	}
	return b
}

// Many frames, one decision.
func TestKernelAgrees(t *testing.T) {
	requireXDP(t)
	objs := loadOwning(t)
	addSocket(t, objs)
	keys := ownedKeys()
	owns := func(k Key) bool { return keys[k] }
	rng := rand.New(rand.NewPCG(4791, 0x8915))
	base := fixtures()
	seen := map[Reason]int{}
	ran := 0
	for range 30000 {
		frame := mutate(rng, base[rng.IntN(len(base))].frame)
		verdict, reason := Classify(frame, owns)
		if judge(t, objs, frame, -1, verdict, reason) {
			ran++
			seen[reason]++
		}
		if t.Failed() {
			return
		}
	}
	for r := range PassNoSocket {
		if seen[r] < 20 {
			t.Errorf("only %d random frames reached %v", seen[r], r)
		}
	}
	t.Logf("%d frames, by reason %v", ran, seen)
}

// The enumerations of xdp.c and of Go are the same.
func TestEnumsAgree(t *testing.T) {
	spec, err := loadXdp()
	if err != nil {
		t.Fatal(err)
	}
	var reason *btf.Enum
	if err := spec.Types.TypeByName("reason", &reason); err != nil {
		t.Fatal(err)
	}
	if len(reason.Values) != NumReasons+1 {
		t.Fatalf("xdp.c has %d reasons, Go has %d", len(reason.Values)-1, NumReasons)
	}
	for i, v := range reason.Values[:NumReasons] {
		if v.Value != uint64(i) || strings.ToLower(v.Name) != Reason(i).String() {
			t.Errorf("reason %d is %s (%d) in C and %v in Go", i, v.Name, v.Value, Reason(i))
		}
	}
	if v := reason.Values[NumReasons]; v.Name != "REASONS" || v.Value != NumReasons {
		t.Errorf("last enumerator is %s (%d)", v.Name, v.Value)
	}
	for name, want := range map[string][3]uint32{
		xdpMapOwned:    {20, 1, MaxKeys},
		xdpMapNear:     {4, 20 * nearKeys, 1},
		xdpMapCounters: {4, 16, NumReasons},
		xdpMapXsks:     {4, 4, 1},
	} {
		m := spec.Maps[name]
		if have := [3]uint32{m.KeySize, m.ValueSize, m.MaxEntries}; have != want {
			t.Errorf("map %s: key, value, entries %v, want %v", name, have, want)
		}
	}
	if flags := spec.Programs[xdpProgXroce].Flags; flags&unix.BPF_F_XDP_HAS_FRAGS == 0 {
		t.Errorf("program flags %#x lack BPF_F_XDP_HAS_FRAGS", flags)
	}
}

// TestPackets: a counter that is read alone says what it says among all, and costs hardly any
// memory: devices ask for one of them ten times a second.
func TestPackets(t *testing.T) {
	requireXDP(t)
	p := loadProgram(t)
	for i, f := range fixtures() {
		for range i % 3 {
			if _, err := runOnce(&p.objs, f.frame, -1); len(f.frame) >= ethLen && err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for r := range Reason(NumReasons) {
		if n, err := p.Count(r); err != nil || n != all[r] {
			t.Errorf("%v: %d (%v), among all %d", r, n, err, all[r])
		}
	}
	if _, err := p.Count(Reason(NumReasons)); err == nil {
		t.Error("a counter that there is not")
	}
	allocations := testing.AllocsPerRun(100, func() { _, _ = p.Count(PassNoSocket) })
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkProgram(b *testing.B) {
	requireXDP(b)
	objs := loadOwning(b)
	addSocket(b, objs)
	for _, f := range fixtures() {
		switch f.name {
		case "v2_ipv4_own", "v2_ipv6_own", "v1_own", "tcp4_4791", "arp",
			"vlan_1", "v2_ipv4_options":
			b.Run(f.name, func(b *testing.B) {
				_, perRun, err := objs.Xroce.Benchmark(f.frame, b.N, b.ResetTimer)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(perRun.Nanoseconds()), "ns/packet")
			})
		}
	}
}
