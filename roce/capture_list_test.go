package roce_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -run TestCaptureList -write-list .

// TestCaptureList plays all captures and compares what was replayed in them with a
// list: a capture of the transport that nothing replays is an error, and so is a
// difference that nothing shows.
func TestCaptureList(t *testing.T) {
	const golden = "testdata/captures.golden"
	var list strings.Builder
	list.WriteString("| capture | our requester sends requests | our responder takes / answers " +
		"| remarks |\n|---|---|---|---|\n")
	for _, name := range captureNames(t) {
		row := captureRow{
			name: name, differ: map[difference]bool{}, remarks: map[string]bool{},
		}
		for _, host := range []byte("AB") {
			row.play(t, host)
		}
		list.WriteString(row.String(t))
	}
	if *writeList {
		must(t, os.WriteFile(golden, []byte(list.String()), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if list.String() != string(want) {
		t.Errorf("%s is not what is replayed: go generate ./roce writes it anew; now it is\n%s",
			golden, &list)
	}
}

// A captureRow is what is replayed of a capture.
type captureRow struct {
	name                 string
	requester, responder []string
	packets, played      int
	differ               map[difference]bool
	remarks              map[string]bool
}

// play plays one host.
func (row *captureRow) play(t *testing.T, host byte) {
	t.Helper()
	c := loadCapture(t, row.name, host)
	row.packets += len(c.packets)
	if c.deaf {
		row.remarks[unheard] = true
	}
	if len(c.packets) == 0 {
		return
	}
	r := newReplay(t, c, host)
	r.play()
	row.played += r.sent + r.responded + r.took
	if r.sent > 0 {
		what := fmt.Sprintf("%c %d", host, r.sent)
		if r.leftOut > 0 {
			what += fmt.Sprintf(" but %d acknowledged meanwhile", r.leftOut)
		}
		row.requester = append(row.requester, what)
	}
	if r.served > 0 {
		row.responder = append(row.responder,
			fmt.Sprintf("%c %d / %d", host, r.served, r.responded))
	}
	for d, found := range c.differ {
		row.differ[d] = row.differ[d] || found
	}
	maps.Copy(row.remarks, r.remarks)
}

// String checks the row and prints it.
func (row *captureRow) String(t *testing.T) string {
	t.Helper()
	if row.packets == 0 {
		row.remarks[management] = true
	} else if row.played != row.packets || len(row.requester)+len(row.responder) == 0 {
		t.Errorf("%s: %d of %d packets are replayed", row.name, row.played, row.packets)
	}
	for d, found := range row.differ {
		if !found {
			t.Errorf("%s: nothing is %q any more", row.name, d.rxe)
		}
		row.remarks[d.why] = true
	}
	remarks := slices.Sorted(maps.Keys(row.remarks))
	return fmt.Sprintf("| %s | %s | %s | %s |\n", row.name, strings.Join(row.requester, "; "),
		strings.Join(row.responder, "; "), strings.Join(remarks, "; "))
}
