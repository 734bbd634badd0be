package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xroce/roce/analyze"
)

// TestAnalyze: the diagnosis comes first, in text and in JSON; a page has the plots, and nothing
// that has to be fetched or run.
func TestAnalyze(t *testing.T) {
	file := captures + "/loss_random_v4.pcap"
	run := func(args ...string) *invocation {
		return bench{machine: goodMachine()}.run(t, append([]string{"analyze"}, args...)...)
	}
	i := run(file)
	if i.code != exitOK || !i.quiet() {
		t.Fatalf("code %d, %s", i.code, i.stderr)
	}
	golden(t, "analyze.golden", i.stdout)
	var r analyze.Report
	if i = run("--json", file); json.Unmarshal([]byte(i.stdout), &r) != nil || r.Packets != 91 ||
		len(r.Diagnosis) != 2 || len(r.Connections) != 1 {
		t.Errorf("code %d, %+v", i.code, r)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if i = run("--html", page, file); i.code != exitOK || i.stdout != "" {
		t.Errorf("code %d, %s", i.code, i.stderr)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(html)
	contains(t, text, "waited for a timeout once", "<svg ", "Packet sequence numbers",
		"Latency of WRITE", "</html>")
	for _, foreign := range []string{"<script", "http://", "https://", "src=", "url("} {
		if strings.Contains(text, foreign) {
			t.Errorf("the page has %q", foreign)
		}
	}
}

// TestAnalyzeBad: a file that ends in the middle is analyzed to there and is a failure; a page that
// cannot be written is one, too.
func TestAnalyzeBad(t *testing.T) {
	file, err := os.ReadFile(captures + "/rc_send_v4.pcap")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "<b>.pcap")
	if err := os.WriteFile(name, file[:len(file)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	b := bench{machine: goodMachine()}
	i := b.run(t, "analyze", name)
	if i.code != exitFailure {
		t.Errorf("cut off: code %d", i.code)
	}
	contains(t, i.stdout, "Nothing went wrong.", "26 packets")
	page := filepath.Join(t.TempDir(), "page.html")
	b.run(t, "analyze", "--html", page, name)
	html, err := os.ReadFile(page)
	if err != nil || strings.Contains(string(html), "<b>") {
		t.Errorf("%v: the name of the file is a command", err)
	}
	if i := b.run(t, "analyze", "--html", "/no/such/directory/page", name); i.code != exitFailure {
		t.Errorf("no directory: code %d", i.code)
	}
	if i := b.run(t, "analyze", "--html", page, "--json", name); i.code != exitUsage {
		t.Errorf("two forms: code %d", i.code)
	}
}

// TestAnalyzeLarge: a file that is read ahead gives the same report as through a pipe, which is
// not, also when its end is missing.
func TestAnalyzeLarge(t *testing.T) {
	t.Parallel()
	name, size := largeCapture(t, 16)
	if size < aheadFrom {
		t.Fatalf("%d bytes, which are not read ahead", size)
	}
	for _, cut := range []int64{0, 3} {
		if err := os.Truncate(name, size-cut); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		pipe := bench{machine: goodMachine(), change: func(a *app) { a.stdin = file }}
		want := pipe.run(t, "analyze", "-")
		got := bench{machine: goodMachine()}.run(t, "analyze", name)
		if got.stdout != want.stdout || got.code != want.code || len(want.stdout) < 1000 {
			t.Errorf("%d bytes fewer: code %d and %d\n%s\n%s", cut, got.code, want.code,
				got.stdout, want.stdout)
		}
	}
}
