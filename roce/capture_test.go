package roce_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

const captureDir = "wire/testdata/captures/"

// A capture is what two Soft-RoCE hosts, A and B, sent each other, as one of
// them saw it, and the verbs calls that made them do it.
type capture struct {
	name    string
	frames  [][]byte
	packets []*wire.Packet
	times   []roce.Time
	from    []byte // 'A' or 'B'
	calls   []*call
	posts   []*posted
	deaf    bool                // nothing reached the host
	differ  map[difference]bool // and whether it was found
}

// captureNames are all captures, without their second views.
func captureNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(captureDir + "*.json")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no captures")
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names
}

// loadCapture reads a capture as host saw it, if there is such a view: else there
// is one view, and the wire between the hosts did nothing.
func loadCapture(t *testing.T, name string, host byte) *capture {
	t.Helper()
	doc, err := os.ReadFile(captureDir + name + ".json")
	must(t, err)
	var about struct {
		A        struct{ GID string }
		Dialogue []string
		Wire     []string // what was done to packets between the hosts
		PacketsA []string `json:"packets_A"`
		PacketsB []string `json:"packets_B"`
	}
	must(t, json.Unmarshal(doc, &about))
	view, lines := "", about.PacketsA
	if host == 'B' && about.PacketsB != nil {
		view, lines = ".B", about.PacketsB
	}
	file, err := os.ReadFile(captureDir + name + view + ".pcap")
	must(t, err)
	frames, err := roctest.Pcap(file)
	must(t, err)
	if len(frames) != len(lines) {
		t.Fatalf("%d frames, %d lines about them", len(frames), len(lines))
	}
	gidA := wire.GIDFromAddr(netip.MustParseAddr(about.A.GID))
	c := &capture{
		name: name, differ: differencesOf(name),
		deaf: host == 'B' && about.Wire != nil && about.PacketsB == nil,
	}
	for i, frame := range frames {
		p := new(wire.Packet)
		if r := p.Decode(frame, nil); r != wire.OK {
			t.Fatalf("packet %d: %s", i, r)
		}
		if p.BTH.DestQP <= 1 || c.deaf {
			continue // management, which is not for these queue pairs; or never came
		}
		seconds, err := strconv.ParseFloat(strings.Fields(lines[i])[0], 64)
		must(t, err)
		c.times = append(c.times, roce.Time(seconds*1e9)+roce.Second)
		c.frames, c.packets = append(c.frames, frame), append(c.packets, p)
		from := byte('B')
		if p.Src == gidA {
			from = 'A'
		}
		c.from = append(c.from, from)
	}
	dialogue := about.Dialogue
	if len(dialogue) == 0 || strings.HasPrefix(name, "cm_") {
		dialogue = rebuildDialogue(c)
	}
	var ours []string
	for _, line := range dialogue {
		ours = append(ours, strings.Split(c.asWeDo(line), "\n")...)
	}
	c.calls = parseDialogue(t, ours)
	c.posts = findPosts(t, c.calls)
	return c
}

// isRequest tells requests from answers.
func isRequest(p *wire.Packet) bool { return p.Spec.Is(wire.ClassRequest) }

// TestCaptures lets our stack take the place of either host of every captured
// conversation. It makes the verbs calls of that host and gets the packets of the
// other one, which was Soft-RoCE, at their times. It must send the requests that
// the host sent and answer requests as it did; completions and memory must be
// what the host's program saw.
func TestCaptures(t *testing.T) { testCaptures(t, false) }

// TestCapturesInTwoParts does it with packets that come in two parts.
func TestCapturesInTwoParts(t *testing.T) { testCaptures(t, true) }

func testCaptures(t *testing.T, halve bool) {
	for _, name := range captureNames(t) {
		for _, host := range []byte("AB") {
			c := loadCapture(t, name, host)
			if len(c.packets) == 0 {
				continue // see TestCaptureList
			}
			t.Run(name+"/"+string(host), func(t *testing.T) {
				r := newReplay(t, c, host)
				r.halve = halve
				r.play()
			})
		}
	}
}
