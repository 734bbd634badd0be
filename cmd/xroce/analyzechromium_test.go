package main

import (
	"context"
	"image/color"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// A rendering is what a browser made of a page.
type rendering struct {
	picture string   // a PNG file
	console []string // what it complained of
	asked   []string // what the page had it ask the network for
}

var (
	// consoleLine is a message of a page, on stderr.
	consoleLine = regexp.MustCompile(`(?m)^\[.*:CONSOLE[:(].*$`)
	// askedLine is a request in a net log, which has an event on a line. What the browser asks for
	// by itself has no origin.
	askedLine = regexp.MustCompile(`"initiator":"([^"]*)".*"url":"([^"]*)"`)
)

// render has Chromium draw a page without a network, and skips the test where it is not there.
func render(t *testing.T, page string) rendering {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("Chromium is not installed (Debian: chromium)")
	}
	dir := t.TempDir()
	r := rendering{picture: filepath.Join(dir, "page.png")}
	netLog := filepath.Join(dir, "net.json")
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	at := url.URL{Scheme: "file", Path: page}
	draw := func(flags ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, browser, append([]string{
			"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
			"--disable-background-networking", "--disable-component-update",
			"--host-resolver-rules=MAP * ~NOTFOUND",
			"--user-data-dir=" + filepath.Join(dir, "user"), "--hide-scrollbars",
			"--window-size=1400,1300", "--enable-logging=stderr",
			"--screenshot=" + r.picture,
		}, flags...)...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		cmd.WaitDelay = timeout.Scaled(10 * time.Second)
		return cmd.CombinedOutput()
	}
	said, err := draw("--log-net-log="+netLog, at.String())
	if err != nil {
		if _, blank := draw("about:blank"); blank != nil {
			t.Skipf("%s cannot run here, not even of an empty page: %v", browser, blank)
		}
		t.Fatalf("%s: %v\n%s", browser, err, said)
	}
	r.console = consoleLine.FindAllString(string(said), -1)
	log, err := os.ReadFile(netLog)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "URL_REQUEST_START_JOB") {
		t.Fatal("the net log has no events")
	}
	for _, m := range askedLine.FindAllStringSubmatch(string(log), -1) {
		if m[1] != "not an origin" {
			r.asked = append(r.asked, m[2])
		}
	}
	return r
}

// colours counts the pixels of each colour in a picture.
func colours(t *testing.T, name string) map[color.RGBA]int {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	count, size := map[color.RGBA]int{}, picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			count[color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)]++
		}
	}
	return count
}

// TestAnalyzeInChromium: a browser draws the plots of the page, asks the network for nothing and
// complains of nothing, whatever the name of the capture is.
func TestAnalyzeInChromium(t *testing.T) {
	t.Parallel()
	capture, err := os.ReadFile(captures + "/loss_random_v4.pcap")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := filepath.Join(dir, `<img src="x.png" onerror=alert(1)> & %41.pcap`)
	if err := os.WriteFile(name, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "page.html")
	i := bench{machine: goodMachine()}.run(t, "analyze", "--html", page, name)
	if i.code != exitOK {
		t.Fatalf("code %d, %s", i.code, i.stderr)
	}
	r := render(t, page)
	if len(r.console) > 0 || len(r.asked) > 0 {
		t.Errorf("it says %q and asks for %q", r.console, r.asked)
	}
	drawn := colours(t, r.picture)
	for what, want := range map[string]struct {
		colour color.RGBA
		pixels int
	}{
		"sent":       {color.RGBA{0x2f, 0x6f, 0xde, 0xff}, 20000}, // most of them bars
		"sent again": {color.RGBA{0xe0, 0xa1, 0x00, 0xff}, 400},
		"refused":    {color.RGBA{0xd9, 0x2d, 0x20, 0xff}, 40},
		"paper":      {color.RGBA{0xff, 0xff, 0xff, 0xff}, 500000},
	} {
		if got := drawn[want.colour]; got < want.pixels {
			t.Errorf("%s: %d pixels, want %d", what, got, want.pixels)
		}
	}
}

// TestChromiumTells: the test above would notice a page that complains, and one that asks for
// something.
func TestChromiumTells(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.html")
	const text = `<img src="http://picture.invalid/a.png"><script>console.error("no")</script>`
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := render(t, page)
	if len(r.console) != 1 || !strings.Contains(r.console[0], "no") {
		t.Errorf("it says %q", r.console)
	}
	if len(r.asked) == 0 || r.asked[0] != "http://picture.invalid/a.png" {
		t.Errorf("it asks for %q", r.asked)
	}
}
