package cm

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestStatesGolden prints the state graph: a changed edge is a changed line.
func TestStatesGolden(t *testing.T) {
	const golden = "testdata/states.golden"
	var b strings.Builder
	b.WriteString("# state: the states that may be next\n")
	for from := range stateEnd {
		fmt.Fprintf(&b, "%s:", from)
		for to := range stateEnd {
			if transitions[from].has(to) {
				fmt.Fprintf(&b, " %s", to)
			}
		}
		b.WriteString("\n")
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the state graph is\n%s\nwant\n%s", b.String(), want)
	}
}

// TestIllegalMove takes an edge that is not there.
func TestIllegalMove(t *testing.T) {
	m, err := New(Config{Rand: new(ones)})
	if err != nil {
		t.Fatal(err)
	}
	c := m.newConn(Path{}, StateREQSent)
	defer func() {
		if recover() == nil {
			t.Error("a connection went from REQ_SENT to ESTABLISHED")
		}
	}()
	m.setState(c, StateEstablished)
}

// ones draws 1, 2, 3.
type ones uint64

func (o *ones) Uint64() uint64 { *o++; return uint64(*o) }

// TestTimeoutCodes compares with what Linux computes for the codes that it uses.
func TestTimeoutCodes(t *testing.T) {
	const ms = 1_000_000
	for _, tt := range []struct {
		code uint8
		want int64
	}{{0, 1 * ms}, {8, 1 * ms}, {9, 2 * ms}, {16, 256 * ms}, {20, 4096 * ms}, {24, 65536 * ms}} {
		if got := int64(timeoutOf(tt.code)); got != tt.want {
			t.Errorf("code %d: %d ns, want %d", tt.code, got, tt.want)
		}
	}
	for _, tt := range []struct{ life, delay, want uint8 }{
		{16, 15, 17},
		{16, 0, 17},
		{16, 16, 18},
		{16, 17, 18},
		{16, 18, 19},
		{16, 19, 19},
		{30, 31, 31},
	} {
		if got := AckTimeout(tt.life, tt.delay); got != tt.want {
			t.Errorf("life %d, delay %d: %d, want %d", tt.life, tt.delay, got, tt.want)
		}
	}
}
