package bpf

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The host goes on as usual while the program is attached with no socket.
func TestHostTrafficPasses(t *testing.T) {
	for _, mode := range []Mode{Native, Generic} {
		t.Run(mode.String(), func(t *testing.T) {
			n := newNetwork(t, 1500, nil)
			p := n.attach(t, Options{Mode: mode})
			for k := range ownedKeys() {
				if err := p.Own(k); err != nil {
					t.Fatal(err)
				}
			}
			n.ping(t, ourAddr4) // begins with ARP: the pair is new
			n.ping(t, ourAddr6) // begins with neighbour discovery
			for _, addr := range []string{ourAddr4, ourAddr6} {
				n.echo(t, addr, 7, 1000)
				n.echo(t, addr, 4791, 1000)
			}
			n.sendRaw(t, cat(ether(ownMAC, ethPIBoE), make([]byte, 60)))
			n.sendRaw(t, cat(ether(groupMAC, ethPNative), make([]byte, 60)))
			n.sendRaw(t, cat(ether(otherMAC, ethPIBoE), make([]byte, 60)))
			n.sendRaw(t, cat(ether(ownMAC, ethP8021Q, ethPIP), udp4(ownIPv4)[14:]))
			n.sendRaw(t, udp4(otherIPv4))

			var c Counters
			eventually(t, "all packets are counted", func() bool {
				var err error
				if c, err = p.Counters(); err != nil {
					t.Fatal(err)
				}
				return c[PassNoSocket].Packets >= 5 && c[PassNotOurs].Packets >= 2
			})
			if c[PassNoSocket].Packets != 5 || c[PassNotOurs].Packets != 2 {
				t.Errorf("counters %+v", c)
			}
			// ARP, pings, ND, UDP to port 7 at the least.
			if have := c[PassNotRoCE]; have.Packets < 6 || have.Bytes < 2000 {
				t.Errorf("%v: %+v", PassNotRoCE, have)
			}
			for r := range Reason(NumReasons) {
				if r.Verdict() == Redirect && c[r] != (Count{}) {
					t.Errorf("%v: %+v", r, c[r])
				}
			}
		})
	}
}

func TestOwnAndDisown(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	p := n.attach(t, Options{})
	key := V1Key(ownMAC)
	frame := cat(ether(ownMAC, ethPIBoE), make([]byte, 60))
	expect := func(r Reason, packets uint64) {
		t.Helper()
		n.sendRaw(t, frame)
		eventually(t, r.String(), func() bool {
			c, err := p.Counters()
			if err != nil {
				t.Fatal(err)
			}
			return c[r].Packets == packets
		})
	}
	expect(PassNotOurs, 1)
	for range 2 {
		if err := p.Own(key); err != nil {
			t.Fatal(err)
		}
	}
	expect(PassNoSocket, 1)
	for range 2 {
		if err := p.Disown(key); err != nil {
			t.Fatal(err)
		}
	}
	expect(PassNotOurs, 2)
	if err := p.Own(Key{}); err == nil {
		t.Error("the zero key can be owned")
	}
	if err := p.Disown(Key{}); err == nil {
		t.Error("the zero key can be disowned")
	}

	mac := [6]byte{2}
	for i := range MaxKeys + 1 {
		binary.BigEndian.PutUint32(mac[2:], uint32(i))
		err := p.Own(V1Key(mac))
		if full := i == MaxKeys; full != errors.Is(err, unix.E2BIG) || !full && err != nil {
			t.Fatalf("address %d: %v", i+1, err)
		}
		const all = ": 4096 addresses are owned, which is all"
		if err != nil && !strings.HasSuffix(err.Error(), all) {
			t.Errorf("one too many: %v", err)
		}
	}
}

func TestRegister(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	p := n.attach(t, Options{Queues: 4})
	if p.Queues() != 4 {
		t.Errorf("%d queues", p.Queues())
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, queue := range []int{0, 3, 0} {
		if err := p.Register(queue, fd); err != nil {
			t.Errorf("queue %d: %v", queue, err)
		}
	}
	for _, queue := range []int{3, 3, 1} {
		if err := p.Unregister(queue); err != nil {
			t.Errorf("queue %d: %v", queue, err)
		}
	}
	for _, queue := range []int{-1, 4} {
		if err := p.Register(queue, fd); err == nil {
			t.Errorf("queue %d was registered", queue)
		}
		if err := p.Unregister(queue); err == nil {
			t.Errorf("queue %d was unregistered", queue)
		}
	}
	tcp, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(tcp)
	if err := p.Register(0, tcp); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("a TCP socket: %v", err)
	}
	if err := p.Register(0, -1); !errors.Is(err, unix.EBADF) {
		t.Errorf("no file: %v", err)
	}
}

// openFiles counts the file descriptors of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestFilesConstant(t *testing.T) {
	n := newNetwork(t, 1500, nil)
	cycle := func() {
		p, err := Attach(n.dev.Index, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cycle() // what is opened once and for all
	before := openFiles(t)
	for range 200 {
		cycle()
	}
	n.linkForeign(t, 0)
	with := openFiles(t)
	for range 20 {
		if p, err := Attach(n.dev.Index, Options{}); err == nil {
			p.Close()
			t.Fatal("attached twice")
		}
	}
	if after := openFiles(t); after != with {
		t.Errorf("%d files, %d after refusals", with, after)
	}
	if with > before+2 { // the stranger's program and link
		t.Errorf("%d files, %d after 200 cycles", before, with-2)
	}
}

// withCaps runs f on a thread of its own that has these capabilities only.
func withCaps(t *testing.T, caps []int, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with us
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		for _, c := range caps {
			data[c/32].Effective |= 1 << (c % 32)
			data[c/32].Permitted |= 1 << (c % 32)
		}
		err := unix.Capset(&hdr, &data[0])
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestCapabilities(t *testing.T) {
	requireXDP(t)
	for _, c := range []struct {
		name    string
		caps    []int
		missing []string
	}{
		{"both", []int{unix.CAP_BPF, unix.CAP_NET_ADMIN}, nil},
		{"admin", []int{unix.CAP_SYS_ADMIN}, nil},
		{"bpf", []int{unix.CAP_BPF}, []string{"CAP_NET_ADMIN"}},
		{"net", []int{unix.CAP_NET_ADMIN}, []string{"CAP_BPF"}},
		{"none", nil, []string{"CAP_BPF", "CAP_NET_ADMIN"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Support
			var err error
			withCaps(t, c.caps, func() { s, err = Probe() })
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(s.Missing, c.missing) {
				t.Errorf("missing %v, want %v", s.Missing, c.missing)
			}
			if enough := len(c.missing) == 0; s.Load != enough || (s.Cause == nil) != enough {
				t.Fatalf("%+v", s)
			}
			if s.Load {
				return
			}
			if !errors.Is(s.Cause, unix.EPERM) {
				t.Errorf("cause %v, want EPERM", s.Cause)
			}
			want := "bpf: load: operation not permitted: " + strings.Join(c.missing, " and ")
			if want += " is missing"; len(c.missing) > 1 {
				want = strings.Replace(want, " is ", " are ", 1)
			}
			if s.Cause.Error() != want {
				t.Errorf("%q, want %q", s.Cause, want)
			}
		})
	}
}

// FuzzParseLink feeds netlink answers: no input may do worse than an error.
func FuzzParseLink(f *testing.F) {
	msg := binary.NativeEndian.AppendUint32(nil, 0)
	msg = binary.NativeEndian.AppendUint16(msg, unix.RTM_NEWLINK)
	msg = append(msg, make([]byte, 26)...)
	attr := func(kind uint16, value []byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, -len(b)&3)...)
	}
	u32 := func(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
	msg = cat(msg, attr(unix.IFLA_IFNAME, []byte("eth0\x00")),
		attr(unix.IFLA_NUM_RX_QUEUES, u32(8)),
		attr(unix.IFLA_XDP|unix.NLA_F_NESTED, cat(attr(2, []byte{4}),
			attr(iflaXDPDrvProgID, u32(77)), attr(iflaXDPSkbProgID, u32(78)))))
	want := device{name: "eth0", rxQueues: 8, progID: 77}
	if have, err := parseLink(msg); err != nil || have != want {
		f.Errorf("%+v, %v, want %+v", have, err, want)
	}
	noDev := cat(make([]byte, 4), binary.NativeEndian.AppendUint16(nil, unix.NLMSG_ERROR),
		make([]byte, 10), u32(^uint32(unix.ENODEV)+1))
	if _, err := parseLink(noDev); !errors.Is(err, unix.ENODEV) {
		f.Errorf("error message: %v", err)
	}
	for n := range msg {
		f.Add(msg[:n])
	}
	f.Add(msg)
	f.Add(noDev)
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseLink(b); err == nil && len(b) < unix.SizeofNlMsghdr+unix.SizeofIfInfomsg {
			t.Errorf("%d bytes are a link: %+v", len(b), d)
		}
	})
}
