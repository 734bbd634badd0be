package main

import (
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"
)

// complete is what a shell offers at the end of a command line, and its directive.
func complete(t *testing.T, line ...string) (offers []string, directive string) {
	t.Helper()
	i := bench{machine: goodMachine()}.run(t, append([]string{"__complete"}, line...)...)
	if i.code != exitOK {
		t.Fatalf("%q: code %d, %s", line, i.code, i.stderr)
	}
	lines := strings.Split(strings.TrimSpace(i.stdout), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

// TestCompletion offers what an argument can be.
func TestCompletion(t *testing.T) {
	const none, dirs, files = ":4", ":16", ":0"
	devices := []string{"eth0", "eth1"}
	for line, want := range map[string][]string{
		"pingpong --device ":                append(devices, none),
		"pingpong -d ":                      append(devices, none),
		"perf send-bw -d ":                  append(devices, none),
		"rping -d ":                         append(devices, none),
		"check ":                            append(devices, none),
		"check eth0 ":                       {none},
		"pingpong --type ":                  {"rc", "uc", "ud", "srq", none},
		"pingpong -m ":                      {"256", "512", "1024", "2048", "4096", none},
		"serve --xsk-mode ":                 {"auto", "copy", "zero-copy", none},
		"perf send-lat --mode ":             {"direct", "busy", "background", none},
		"serve --xdp-mode ":                 {"auto", "native", "generic", none},
		"serve --dir ":                      {dirs},
		"copy ":                             {files},
		"copy file ":                        {files},
		"pingpong ":                         {none},
		"pingpong --size ":                  {none},
		"pingpong 192.0.2.2 -d ":            append(devices, none),
		"stat --interface ":                 append(devices, none),
		"perf read-bw --connection ":        {"RC", none},
		"perf write-lat -c ":                {"RC", "UC", none},
		"perf send-bw -c ":                  {"RC", "UC", "UD", "RAW_PACKET", none},
		"perf read-bw --output ":            {"bandwidth", "message_rate", none},
		"perf send-lat --output ":           {"latency", none},
		"perf write-bw --rate_limit_type ":  {"HW", "SW", none},
		"perf atomic-bw --rate_limit_type ": {"HW", none},
		"serve --congestion ":               {"dcqcn", "notify", "off", "swift", none},
		"decode ":                           {files},
		"decode a.pcap ":                    {none},
		"msg decode ":                       {files},
		"tcpdump ":                          {none},
		"perf send-bw --dump ":              {files},
		"--log-format ":                     {"text", "json", none},
		"version ":                          {none},
		"demo --capture ":                   {files},
		"perf atomic-lat -A ":               {"FETCH_AND_ADD", "CMP_AND_SWAP", none},
		"copy --extensions ": {
			"all", "selective", "reorder", "piggyback", "none", none,
		},
	} {
		args := strings.Split(line, " ")
		offers, directive := complete(t, args...)
		if got := append(offers, directive); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestCommandsAreForgotten: a command that has ended holds no memory.
func TestCommandsAreForgotten(t *testing.T) {
	a := newApp(io.Discard, io.Discard)
	held := weak.Make(a)
	if code := a.run(t.Context(), []string{"version"}); code != exitOK {
		t.Fatal(code)
	}
	runtime.KeepAlive(a)
	runtime.GC()
	if held.Value() != nil {
		t.Error("something still holds it")
	}
}
