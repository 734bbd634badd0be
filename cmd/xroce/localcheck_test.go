package main

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnMistakesMeetNobody: what is wrong at this end is told before the other end hears
// of it, by each command that meets somebody, in both roles.
func TestOwnMistakesMeetNobody(t *testing.T) {
	b, _ := simBench(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	met := make(chan struct{})
	go func() {
		defer close(met)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Error("the other end was met")
			conn.Close()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file, _ := randomFile(t, 100, 0o600)
	gid := []string{"GID index 7 of xr1 is empty", "'xroce devinfo -v -d xr1' lists them"}
	mtu := []string{"path MTU of 4096", "use -m 1024", "ip link set xr51 mtu 4176"}
	device := []string{"no interface eth9"}
	serve := "serve --insecure -d eth9 --dir " + t.TempDir()
	for line, want := range map[string][]string{
		"pingpong -g 7 -d xr1":                 gid,
		"pingpong -d eth9":                     device,
		"pingpong -g 999 -d xr1":               {"GID index 999"},
		"pingpong --type ud -s 4097 -d xr1":    {"-s 4097", "at most 4096 bytes"},
		"pingpong -m 4096 -d xr51":             mtu,
		"perf read-bw -m 2048 -d xr51":         {"2048", "MTU of xr51, 1500", "use -m 1024"},
		"perf send-bw -m 4096 -d xr51 -R":      mtu,
		"perf send-bw -x 7 -d xr1":             gid,
		"perf read-lat -d eth9":                device,
		"perf write-bw -x 7 -d xr1 -R":         gid,
		"copy " + file + " 127.0.0.1: -d eth9": device,
		serve:                                  device,
	} {
		for _, client := range []bool{true, false} {
			args := append(strings.Fields(line), "-p", port)
			switch isCopy := args[0] == "copy"; {
			case isCopy && !client, args[0] == "serve" && client:
				continue
			case !client:
				args[len(args)-1] = "0"
				if slices.Contains(args, "-R") || args[0] == "serve" {
					args[len(args)-1] = "1"
				}
			case !isCopy:
				args = append(args, "127.0.0.1")
			}
			i := b.run(t, args...)
			if i.code != exitFailure && i.code != exitUsage {
				t.Errorf("%q: code %d, %s", args, i.code, i.stderr)
			}
			contains(t, i.stderr, want...)
		}
	}
	listener.Close()
	<-met
}

// TestExplainDial says more than the errno does.
func TestExplainDial(t *testing.T) {
	for errno, want := range map[unix.Errno]string{
		unix.ECONNREFUSED: "start the server first", unix.ENETUNREACH: "'ip route get h' tells",
		unix.EHOSTUNREACH: "no host has this address", unix.ETIMEDOUT: "is the address right",
	} {
		cause := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
		err := explainDial(cause, "h")
		if !errors.Is(err, errno) {
			t.Errorf("%v hides its cause", err)
		}
		contains(t, err.Error(), "dial tcp", want)
	}
	if err := errors.New("other"); explainDial(err, "h") != err {
		t.Error("an error is explained that is not known")
	}
}
