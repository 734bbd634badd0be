package main

import (
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk/xsktest/timeout"
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
	lines := map[string][]string{
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
	}
	maps.Copy(lines, perfMistakes(file))
	for line, want := range lines {
		for _, client := range []bool{true, false} {
			args := append(strings.Fields(line), "-p", port)
			switch isCopy := args[0] == "copy"; {
			case isCopy && !client, args[0] == "serve" && client:
				continue
			case !client:
				args[len(args)-1] = "0"
				managed := slices.Contains(args, "-R") || slices.Contains(args, "-z")
				if managed || args[0] == "serve" {
					args[len(args)-1] = "1"
				}
			case !isCopy:
				args = append(args, "127.0.0.1")
			}
			i := b.start(t, args...)
			select {
			case <-i.ready:
				t.Errorf("%q: it said that it waits", args)
				i.cancel()
			case <-i.done:
			case <-time.After(timeout.Scaled(time.Minute)):
			}
			i.wait(t)
			if i.code != exitFailure && i.code != exitUsage && i.code != exitUnsupported {
				t.Errorf("%q: code %d, %s", args, i.code, i.stderr)
			}
			contains(t, i.stderr, want...)
		}
	}
	listener.Close()
	<-met
}

// perfMistakes are command lines of perf that are wrong for this end alone, with what it says of
// them. The file has 100 bytes.
func perfMistakes(file string) map[string][]string {
	const absent = "/no/such/dir/f"
	datagram := []string{"a datagram is at most as long as the path MTU, 1024 bytes"}
	huge, short := []string{"--use_hugepages: "}, []string{"--mmap: ", "which has 100"}
	unwritable := []string{"open " + absent + ": no such file or directory"}
	lines := map[string][]string{
		"-c UD -s 4000 -d xr51":         datagram,
		"-c UD -s 2000 -m 1024 -d xr1":  datagram,
		"-c UD -s 4000 -z -d xr51":      datagram,
		"-c RAW_PACKET -s 59 -d xr1":    {"-s 59", "have 60 to 4214 bytes"},
		"-c RAW_PACKET -s 1515 -d xr51": {"-s 1515", "have 60 to 1514 bytes"},
		"-c UD -s 64 -g -x 1 -M ff15::1 -d xr1": {
			"GID 192.0.2.1 cannot send to group ff15::1",
		},
		"-q 16384 -s 4M -d xr1":                            {"choose a smaller -q or -s"},
		"--use_hugepages -q 4 -s 1024M -d xr1":             huge,
		"--use_hugepages -q 4 -s 1024M -R -d xr1":          huge,
		"--use_hugepages -q 4 -s 1024M --odp -d xr1":       huge,
		"--mmap " + file + " -d xr1":                       short,
		"--mmap " + file + " -d xr1 -R":                    short,
		"--mmap " + file + " -d xr1 --odp":                 short,
		"--dump " + absent + " -d xr1":                     unwritable,
		"--dump " + absent + " -d xr1 -R":                  unwritable,
		"--dump / -d xr1":                                  {"open /: is a directory"},
		"--out_json --out_json_file " + absent + " -d xr1": unwritable,
		"--rate_limit 1 --rate_limit_type HW -R -d xr1":    {"does not go with -R"},
	}
	whole := make(map[string][]string, len(lines))
	for line, want := range lines {
		whole["perf send-bw "+line] = want
	}
	return whole
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
