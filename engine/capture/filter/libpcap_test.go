package filter

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLikeLibpcap: what libpcap makes of an expression wants the same packets. dumpcap -d
// prints its program, which is run here. Tagged frames are left out: in libpcap what follows
// "vlan" is about what is behind the tag, and here headers are found behind it anyway.
func TestLikeLibpcap(t *testing.T) {
	if _, err := exec.LookPath("dumpcap"); err != nil {
		t.Skip("dumpcap is not installed")
	}
	all := packets(t)
	for _, expression := range []string{
		"arp or tcp", "host 192.0.2.1", "src host 192.0.2.2", "ip host 192.0.2.2",
		"src or dst host 2001:db8::2", "src and dst net 2001:db8::/32", "net 192.0.2.0/24",
		"udp dst port 4791 and ip", "portrange 49152-65535", "ether proto 0x8915",
		"ether dst 02:00:00:00:00:02", "ether broadcast", "ether multicast", "ip proto 17",
		"less 42", "greater 70 and ip", "ip[8] == 64", "udp[8] == 0x0c", "ip6[6] & 0xf0 != 0",
		"ip or ip6 and udp port 1", "not (ip or arp) and udp",
	} {
		out, err := exec.Command("dumpcap", "-d", "-i", "lo", "-f", expression).Output()
		if err != nil || !bpfLine.Match(out) { // who may not capture gets no program, and exit 0
			t.Skipf("dumpcap cannot compile here: %v %s", err, out)
		}
		f, err := Compile(expression)
		if err != nil {
			t.Error(err)
			continue
		}
		for name, p := range all {
			if name == "ud" || name == "" { // libpcap reads nothing of an empty one, and refuses it
				continue
			}
			want, err := runBPF(string(out), p.Head)
			if err != nil {
				t.Fatalf("%s: %v\n%s", expression, err, out)
			}
			if got := f.Match(p); got != want {
				t.Errorf("%s: %q: %t, libpcap says %t\n%s", expression, name, got, want, out)
			}
		}
	}
}

var bpfLine = regexp.MustCompile(`(?m)^\((\d+)\) (\w+)\s*(\S.*?)?(?:\s+jt (\d+)\s+jf (\d+))?$`)

// runBPF runs a program of the classic BPF in the form of tcpdump -d.
func runBPF(program string, frame []byte) (bool, error) {
	lines := bpfLine.FindAllStringSubmatch(program, -1)
	var a, x uint64
	var scratch [16]uint64
	for pc := 0; pc < len(lines); pc++ {
		op, arg := lines[pc][2], lines[pc][3]
		value := func() uint64 {
			if arg == "x" {
				return x
			}
			n, _ := strconv.ParseUint(strings.TrimPrefix(arg, "#"), 0, 32)
			return n
		}
		jump := func(yes bool) {
			to := lines[pc][5]
			if yes {
				to = lines[pc][4]
			}
			n, _ := strconv.Atoi(to)
			pc = n - 1
		}
		switch op {
		case "ldb", "ldh", "ld":
			if strings.HasPrefix(arg, "M[") {
				a = scratch[arg[2]-'0']
				continue
			}
			if arg == "#pktlen" {
				a = uint64(len(frame))
				continue
			}
			off := 0
			if _, err := fmt.Sscanf(arg, "[x + %d]", &off); err == nil {
				off += int(x)
			} else if _, err := fmt.Sscanf(arg, "[%d]", &off); err != nil {
				return false, fmt.Errorf("%s %s", op, arg)
			}
			n := map[string]int{"ldb": 1, "ldh": 2, "ld": 4}[op]
			if off+n > len(frame) {
				return false, nil
			}
			a = binary.BigEndian.Uint64(append(make([]byte, 8-n), frame[off:off+n]...))
		case "ldxb":
			if len(frame) < 15 {
				return false, nil
			}
			x = 4 * uint64(frame[14]&15)
		case "st":
			scratch[arg[2]-'0'] = a
		case "tax":
			x = a
		case "txa":
			a = x
		case "and":
			a &= value()
		case "add":
			a += value()
		case "jeq":
			jump(a == value())
		case "jgt":
			jump(a > value())
		case "jge":
			jump(a >= value())
		case "jset":
			jump(a&value() != 0)
		case "ja":
			pc = int(value()) - 1
		case "ret":
			return value() != 0, nil
		default:
			return false, fmt.Errorf("no %s", op)
		}
	}
	return false, fmt.Errorf("no end")
}
