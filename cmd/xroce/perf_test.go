package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xroce/cmd/perfdump"
	"xroce/cmd/xroce/internal/perf"
)

// perfPair runs a test at both ends, the client with args of its own, and returns
// the two when they have ended. Nothing is lost: both get 4.3 s of patience with a machine
// that is busy, where the tools have 67 ms.
func perfPair(t *testing.T, b bench, test, both, clientOnly string) (server, client *invocation) {
	t.Helper()
	flags := append(strings.Fields(both), "-u", "20")
	server = b.start(t, append([]string{"perf", test, "-d", "xr1", "-p", "0"}, flags...)...)
	port := server.listenPort(t)
	args := append([]string{"perf", test, "-d", "xr2", "-p", port}, flags...)
	args = append(args, strings.Fields(clientOnly)...)
	client = b.start(t, append(args, "127.0.0.1")...)
	client.wait(t)
	return server.wait(t), client
}

// perfNumbers are what differs from run to run.
var perfNumbers = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`QPN 0x[0-9a-f]{4,6} PSN 0x[0-9a-f]+`), "QPN 0xQ PSN 0xP"},
	{regexp.MustCompile(`RKey 0x[0-9a-f]{6,8} VAddr 0x[0-9a-f]{14,16}`), "RKey 0xK VAddr 0xV"},
	{regexp.MustCompile(`(?m)^(\d+), [0-9.e+-]+$`), "$1, N"}, // samples
	{regexp.MustCompile(`(?m)\d+\.\d+([ \t]|$)`), "N$1"},
	{regexp.MustCompile(`(?m)N([ \t]+|$)`), "N "},
}

// perfShape is what a test printed, without its numbers.
func perfShape(text string) string {
	for _, n := range perfNumbers {
		text = n.pattern.ReplaceAllString(text, n.with)
	}
	return slowRow.ReplaceAllStringFunc(text, func(row string) string {
		cells := slowRow.FindStringSubmatch(row)
		return fmt.Sprintf("%s%-10s       N N N ", cells[1], cells[2])
	})
}

// slowRow is a row of less than 0.1 Gb/s with --report_gbits, which the tool lays out in
// another way: a machine that is busy may be so slow.
var slowRow = regexp.MustCompile(`(?m)^( \d+ +)(\d+) {11}N N N $`)

// TestPerf runs each test over each transport that it has, and some of its flags,
// between two of our own ends.
func TestPerf(t *testing.T) {
	t.Parallel()
	slow := " 65536      120           0.052429            0.002031            0.000004\n"
	if got, want := perfShape(slow), " 65536      120              N N N \n"; got != want {
		t.Errorf("a slow row is %q, want %q", got, want)
	}
	for _, c := range []struct{ test, flags string }{
		{"send-bw", ""},
		{"send-bw", "-c UC"},
		{"send-bw", "-c UD -s 1000"},
		{"send-bw", "-b --report-both"},
		{"send-bw", "-b -c UD -q 2 -s 100"},
		{"send-bw", "-q 3 -e --report_gbits"},
		{"send-bw", "--use-srq -q 2 -s 100"},
		{"send-bw", "-I 100 -s 100 -l 4 --recv_post_list=5"},
		{"send-bw", "-r 3 -t 2"},
		{"send-bw", "--reversed"},
		{"send-bw", "--busy"},
		{"send-lat", ""},
		{"send-lat", "-c UC -e"},
		{"send-lat", "-c UD"},
		{"send-lat", "-H -s 500 --latency_gap 5"},
		{"send-lat", "-U"},
		{"write-bw", ""},
		{"write-bw", "-c UC -q 2 -s 100 --perform_warm_up"},
		{"write-bw", "-b -q 2"},
		{"write-bw", "-s 5000 -Q 3 --rate_limit 2 --burst_size 4"},
		{"write-bw", "--rate_limit 20 --rate_limit_type HW --report_gbits -N"},
		{"write-bw", "--reversed"},
		{"write-bw", "--odp"},
		{"send-bw", "--odp --inline_recv=0 -s 100"},
		{"read-lat", "--inline_recv=16 -s 16 --odp"},
		{"write-lat", ""},
		{"write-lat", "-c UC -s 300"},
		{"read-bw", ""},
		{"read-bw", "-b -o 3 -s 3000"},
		{"read-bw", "-e -m 256 -s 4097"},
		{"read-lat", ""},
		{"read-lat", "-e"},
		{"atomic-bw", ""},
		{"atomic-bw", "-A CMP_AND_SWAP -q 2"},
		{"atomic-bw", "-b"},
		{"atomic-lat", ""},
		{"atomic-lat", "-A CMP_AND_SWAP -e"},
	} {
		t.Run(c.test+" "+c.flags, func(t *testing.T) {
			b, _ := simBench(t)
			server, client := perfPair(t, b, c.test, "-n 40 "+c.flags, "")
			for name, i := range map[string]*invocation{"client": client, "server": server} {
				if i.code != exitOK || !i.quiet() {
					t.Fatalf("%s: code %d, stderr %s", name, i.code, i.stderr)
				}
			}
			golden(t, filepath.Join("perf", perfGolden(c.test+" "+c.flags)),
				perfShape("client\n"+client.stdout+"\nserver\n"+server.stdout))
		})
	}
}

// perfGolden is a command line as the name of a file.
func perfGolden(line string) string {
	return regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(strings.TrimSpace(line), "_") +
		".golden"
}

// TestPerfAllSizes runs all sizes at once; the last one is 8 MiB.
func TestPerfAllSizes(t *testing.T) {
	t.Parallel()
	for test, flags := range map[string]string{
		"send-bw": "-b", "write-bw": "-b", "read-bw": "", "send-lat": "", "write-lat": "",
	} {
		b, _ := simBench(t)
		server, client := perfPair(t, b, test, "-a -n 5 "+flags, "")
		if client.code != exitOK || server.code != exitOK {
			t.Fatalf("%s: %s%s", test, client.stderr, server.stderr)
		}
		rows := regexp.MustCompile(`(?m)^ (\d+) +5 `).FindAllStringSubmatch(client.stdout, -1)
		if len(rows) != 23 || rows[0][1] != "2" || rows[22][1] != "8388608" {
			t.Errorf("%s printed %d sizes:\n%s", test, len(rows), client.stdout)
		}
	}
	b, _ := simBench(t)
	_, client := perfPair(t, b, "send-bw", "-a -n 5 -c UD -m 1024", "")
	if !strings.Contains(client.stdout, "\n 1024 ") || strings.Contains(client.stdout, "\n 2048 ") {
		t.Errorf("UD:\n%s%s", client.stdout, client.stderr)
	}
}

// perfKeys are the keys of the tool's report, by the kind of test.
var perfKeys = map[string]string{
	"send-bw": `BW_average BW_peak MsgRate MsgSize n_iterations`,
	"read-lat": `MsgSize n_iterations percentile_99 percentile_99.9 t_avg t_max t_min t_stdev ` +
		`t_typical`,
}

func TestPerfJSON(t *testing.T) {
	for test, keys := range perfKeys {
		b, _ := simBench(t)
		file := filepath.Join(t.TempDir(), "out.json")
		_, client := perfPair(t, b, test, "-n 20 -s 100", "--json --out_json --out_json_file="+file)
		var d perf.Document
		if err := json.Unmarshal([]byte(client.stdout), &d); err != nil {
			t.Fatalf("%v in %s, %s", err, client.stdout, client.stderr)
		}
		if d.TestInfo.Device != "xr2" || d.TestInfo.MTU != 4096 || d.RoCE.RemoteVersion != "6.06" ||
			d.RoCE.Backend != "sim" || d.RoCE.Remote[0].GID != "::ffff:192.0.2.1" ||
			d.RoCE.Counters["sent_pkts"] == 0 || d.RoCE.Unit != "MiB/s" {
			t.Errorf("%+v", d)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range []string{string(text), client.stdout} {
			var report struct {
				Info    map[string]any  `json:"test_info"`
				Results json.RawMessage `json:"results"`
			}
			if err := json.Unmarshal([]byte(doc), &report); err != nil {
				t.Fatal(err)
			}
			var r map[string]any
			result := strings.Trim(string(report.Results), "[]\n ")
			if err := json.Unmarshal([]byte(result), &r); err != nil {
				t.Fatal(err)
			}
			if got := sortedKeys(r); got != keys {
				t.Errorf("%s: results have %s", test, got)
			}
			for _, k := range []string{"test", "Connection_type", "GID_index", "Data_ex_method"} {
				if report.Info[k] == nil {
					t.Errorf("test_info has no %s: %s", k, doc)
				}
			}
		}
	}
}

// TestPerfDump: both ends write the memory that they worked on, which says where the
// data of the one are at the other; a file that cannot be written is a failure.
func TestPerfDump(t *testing.T) {
	b, _ := simBench(t)
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "server"), filepath.Join(dir, "client")}
	server := b.start(t, "perf", "write-bw", "-d", "xr1", "-p", "0", "-n", "10", "-s", "100",
		"-u", "20", "--dump", files[0])
	client := b.run(t, "perf", "write-bw", "-d", "xr2", "-p", server.listenPort(t), "-n", "10",
		"-s", "100", "-u", "20", "--dump", files[1], "127.0.0.1")
	server.wait(t).exited(t, exitOK)
	client.exited(t, exitOK)
	var dumps []*perfdump.Dump
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		d, err := perfdump.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, d)
	}
	q := dumps[1].QPs[0]
	at := q.RemoteAddress - dumps[0].Address
	if !bytes.Equal(dumps[0].After[at:][:100], dumps[1].After[q.Send.Of(0):][:100]) ||
		bytes.Equal(dumps[0].Before[at:][:100], dumps[0].After[at:][:100]) {
		t.Error("the first message is not where it was sent")
	}
	_, client = perfPair(t, b, "read-lat", "-n 5", "--dump /dev/full")
	client.exited(t, exitFailure)
	contains(t, client.stderr, "no space left")
}

// TestPerfRefuses: wrong command lines and flags that we do not have.
func TestPerfRefuses(t *testing.T) {
	b, _ := simBench(t)
	for line, want := range map[string]string{
		"send-lat --mode x":                              "there are direct, busy and background",
		"send-bw a b":                                    "accepts at most 1",
		"send-bw -n 4":                                   "-n 4 is not in 5",
		"send-bw -c XRC":                                 "there are RC, UC, UD and RAW_PACKET",
		"send-bw -m 1000":                                "256, 512",
		"send-bw -s x":                                   "is no size",
		"send-bw -s 4G":                                  "is no size",
		"send-bw -q 0":                                   "-q 0 is not in 1",
		"send-bw -u 32":                                  "-u 32",
		"send-bw -D 4 -f 2":                              "more than twice",
		"send-bw -D 4 -e":                                "-D does not go with -e",
		"send-bw -D 4 -a":                                "-D does not go with -a",
		"send-bw --report-both":                          "needs -b",
		"send-bw --cpu_util":                             "needs -D",
		"send-bw -n 10 -l 3":                             "multiple of -l",
		"send-bw -l 4 -Q 3 -n 12":                        "multiple of -Q",
		"send-bw --rate_limit 1 -b":                      "not for -b of send",
		"send-bw --rate_limit -1":                        "is no rate",
		"send-bw --rate_limit NaN":                       "is no rate",
		"send-bw --rate_limit Inf":                       "is no rate",
		"send-bw --limit_bw NaN":                         "--limit_bw NaN is no limit",
		"send-bw --limit_msgrate -1":                     "--limit_msgrate -1 is no limit",
		"send-bw --limit_bw 1 --run_infinitely":          "does not go with --run_infinitely",
		"send-bw --rate_limit 1e-9 --rate_limit_type HW": "less than 1 kbit/s",
		"send-bw --rate_limit 1 --rate_units":            "flag needs an argument",
		"send-bw --rate_limit 1 --rate_units x --rate_limit_type SW": "there are M, g and p",
		"send-bw --rate_limit 1 --rate_limit_type PP":                "there are HW and SW",
		"send-bw --burst_size 4":                                     "needs --rate_limit",
		"send-bw --run_infinitely -b":                                "does not go with -b",
		"send-bw --output latency":                                   "there are bandwidth",
		"send-bw --use-srq -q 4 -r 2":                                "one receive for each QP",
		"send-bw -x -2":                                              "-x -2",
		"send-bw --ib-port 2":                                        "--ib-port 2",
		"send-bw -S 3":                                               "service level 0",
		"send-bw --pkey_index 1":                                     "one P_Key",
		"send-bw --force-link IB":                                    "only Ethernet",
		"send-bw -T 4":                                               "--tclass marks others",
		"send-bw -O":                                                 "one port",
		"send-bw --data_validation":                                  "pingpong -c",
		"send-bw --dont_xchg_versions":                               "without a version",
		"send-lat -C":                                                "no cycle counter",
		"send-lat -D 4 -H":                                           "keeps no samples",
		"send-lat --run_infinitely":                                  "unknown flag",
		"write-bw -c UD":                                             "UD is for send",
		"read-bw -c UC":                                              "no READ",
		"atomic-bw -A ADD":                                           "CMP_AND_SWAP",
		"atomic-bw -s 16":                                            "unknown",
		"write-lat -e":                                               "unknown shorthand",
		"write-bw --output message_rat":                              "message_rate",
		"read-bw -o 200":                                             "-o 200",
		"read-bw --dump x -a":                                        "--dump is for one size",
		"send-bw --dump x --use-srq":                                 "--dump is for one size",
		"send-bw -L 0":                                               "-L 0 is not in 1..255",
		"send-bw -L 256":                                             "-L 256",
		"read-bw --inline_recv 65":                                   "--inline_recv 65 is not",
		"write-bw --inline_recv 8":                                   "a WRITE makes no completion",
		"send-bw --mmap-offset 5":                                    "needs --mmap",
		"send-bw --mmap x --mmap-offset -1":                          "is negative",
		"write-bw --flow_label 9999999":                              "--flow_label",
		"nonsense":                                                   "unknown command",
	} {
		i := b.run(t, append([]string{"perf"}, strings.Fields(line)...)...)
		if i.code != exitUsage || i.stdout != "" || !strings.Contains(i.stderr, want) {
			t.Errorf("%s: code %d, stdout %q, stderr %q", line, i.code, i.stdout, i.stderr)
		}
	}
}

// With -R there is no TCP: all goes over rdma_cm.
func TestPerfManaged(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, line := range []string{
		"send-bw -n 100 -s 5000", "send-bw -n 100 -q 3 -b", "send-lat -n 50 -s 64",
		"write-bw -n 100 -q 2", "write-lat -n 50", "read-bw -n 100 -o 4", "read-lat -n 50 -e",
		"atomic-bw -n 50",
	} {
		t.Run(line, func(t *testing.T) {
			if raceDetector && strings.HasPrefix(line, "write-lat") {
				// It looks at memory that the peer writes, which is what it measures; with
				// -R that is another goroutine's doing.
				t.Skip("looking at memory that a peer writes is a race by design")
			}
			t.Parallel() // each waits for seconds until its connection is forgotten
			b, _ := simBench(t)
			// Nothing is lost: 4.3 s of patience with a busy machine.
			args := append([]string{"perf"}, strings.Fields(line+" -u 20")...)
			server := b.startListening(t, append(args, "-d", "xr1", "-R")...)
			client := b.run(t, append(args, "-d", "xr2", "-R", "192.0.2.1")...)
			if server.wait(t); client.code != exitOK {
				t.Errorf("server: code %d, stderr %s", server.code, server.stderr)
			}
			client.exited(t, exitOK)
			server.exited(t, exitOK)
			contains(t, client.stdout, "rdma_cm QPs\t : ON", "Data ex. method : rdma_cm")
			contains(t, server.stdout, "rdma_cm QPs\t : ON", "Data ex. method : rdma_cm")
		})
	}
}

func TestPerfManagedNobodyListens(t *testing.T) {
	b, _ := simBench(t)
	server := b.startListening(t, "perf", "send-bw", "-d", "xr1", "-R", "-p", "1000")
	client := b.run(t, "perf", "send-bw", "-d", "xr2", "-R", "192.0.2.1")
	client.exited(t, exitFailure)
	contains(t, client.stderr, "rejected: ")
	server.cancel()
	server.exited(t, exitOK)
}

func TestPerfManagedUnsupported(t *testing.T) {
	b, _ := simBench(t)
	for line, want := range map[string]string{
		"-R -c UD": "type RC", "--rdma_cm -c UC": "type RC",
	} {
		i := b.run(t, append([]string{"perf", "send-bw"}, strings.Fields(line)...)...)
		i.exited(t, exitUnsupported)
		contains(t, i.stderr, want)
	}
}

func TestPerfHelp(t *testing.T) {
	b, _ := simBench(t)
	contains(t, b.run(t, "perf", "--help").stdout, "Examples:", "ib_send_bw", "send-lat", "--json")
	contains(t, b.run(t, "perf", "read-bw", "--help").stdout, "Examples:", "ib_read_bw",
		"-o, --outs")
	if v := b.run(t, "perf", "send-bw", "-V"); v.stdout != "Version: 6.06\n" || v.code != exitOK {
		t.Errorf("-V printed %q", v.stdout)
	}
}

// TestPerfHelpConnectionTypes: the help offers what the test takes, and no more.
func TestPerfHelpConnectionTypes(t *testing.T) {
	b, _ := simBench(t)
	for test, want := range map[string]string{
		"send-lat": "type: RC, UC, UD or RAW_PACKET (", "write-bw": "type: RC or UC (",
		"read-bw": "type: there is RC (", "atomic-lat": "type: there is RC (",
	} {
		contains(t, b.run(t, "perf", test, "--help").stdout, want)
	}
}

func TestPerfLimits(t *testing.T) {
	b, _ := simBench(t)
	_, client := perfPair(t, b, "send-bw", "-n 10", "-w 1e12")
	if client.code != exitFailure {
		t.Errorf("code %d", client.code)
	}
	contains(t, client.stderr, "below the limit of 1000000000000.00")
	_, client = perfPair(t, b, "send-bw", "-n 10", "-y 1e12")
	contains(t, client.stderr, "message rate", "below the limit")
}

func TestPerfOutput(t *testing.T) {
	for flag, test := range map[string]string{
		"bandwidth": "send-bw", "message_rate": "write-bw", "latency": "read-lat",
	} {
		b, _ := simBench(t)
		_, client := perfPair(t, b, test, "-n 10 --output "+flag, "")
		if !regexp.MustCompile(`^\d+\.\d{6}\n$`).MatchString(client.stdout) {
			t.Errorf("%s printed %q", test, client.stdout)
		}
	}
}

// TestPerfStranger: what connects is something else, which speaks like a client at first.
func TestPerfStranger(t *testing.T) {
	for said, want := range map[string]string{
		"5.11":                              "closed the connection after 4 of 16",
		"dead" + strings.Repeat(" ", 12):    "is no version; we are version 6.06",
		"5.11" + strings.Repeat("\x00", 12): "the peer is version 5.11, we are 6.06",
	} {
		b, _ := simBench(t)
		server := b.start(t, "perf", "send-bw", "-d", "xr1", "-p", "0")
		conn, err := net.Dial("tcp", "127.0.0.1:"+server.listenPort(t))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, said)
		if len(said) < 16 {
			conn.Close()
		}
		server.wait(t)
		conn.Close()
		contains(t, server.stderr, want)
		if server.code != exitFailure && server.code != exitUnsupported {
			t.Errorf("%q: code %d", said, server.code)
		}
	}
}

// A hookWriter tells when some text is written through it, once.
type hookWriter struct {
	io.Writer
	text    string
	written chan struct{}
}

func (w *hookWriter) Write(b []byte) (int, error) {
	if w.text != "" && strings.Contains(string(b), w.text) {
		w.text = ""
		close(w.written)
	}
	return w.Writer.Write(b)
}

// sortedKeys are the keys of a map in one line.
func sortedKeys(m map[string]any) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), " ")
}
