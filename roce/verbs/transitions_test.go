package verbs

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTransitionsGolden prints the state graph: a changed edge is a changed line.
func TestTransitionsGolden(t *testing.T) {
	const golden = "testdata/qp_transitions.golden"
	var b strings.Builder
	b.WriteString("# type, from, to, required attributes, optional attributes\n")
	eachEdge(func(typ QPType, from, to State) {
		m := transitionOf(typ, from, to)
		if !m.legal {
			fmt.Fprintf(&b, "%-10s %-5s %-5s -\n", typ, from, to)
			return
		}
		fmt.Fprintf(&b, "%-10s %-5s %-5s required [%s] optional [%s]\n", typ, from, to,
			m.required, m.optional)
	})
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

// eachEdge goes through all pairs of states of all types.
func eachEdge(f func(typ QPType, from, to State)) {
	for typ := range QPType(typeCount) {
		if !typ.Known() {
			continue
		}
		for from := range stateCount {
			for to := range stateCount {
				f(typ, from, to)
			}
		}
	}
}

// TestCheckTransition tries every edge with the required attributes, with each of them
// missing and with each other attribute on top.
func TestCheckTransition(t *testing.T) {
	eachEdge(func(typ QPType, from, to State) {
		m := transitionOf(typ, from, to)
		if err := CheckTransition(typ, from, to, m.required|AttrState); (err == nil) != m.legal {
			t.Errorf("%s %s to %s: %v", typ, from, to, err)
		}
		if !m.legal {
			return
		}
		for bit := AttrMask(2); bit != 0; bit <<= 1 {
			err := CheckTransition(typ, from, to, m.required^bit)
			if ok := m.optional&bit != 0; (err == nil) != ok {
				t.Errorf("%s %s to %s with [%s]: %v", typ, from, to, m.required^bit, err)
			} else if err != nil && !strings.Contains(err.Error(), bit.String()) {
				t.Errorf("%q does not name %s", err, bit)
			}
		}
	})
}

// TestNames: every value prints as verbs spells it, and unknown ones print too.
func TestNames(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{StateSQD.String(), "SQD"},
		{State(9).String(), "state 9"},
		{TypeRC.String(), "RC"},
		{QPType(5).String(), "type 5"},
		{OpWriteImm.String(), "RDMA_WRITE_WITH_IMM"},
		{Opcode(77).String(), "opcode 77"},
		{StatusRetryExcErr.String(), "transport retry counter exceeded"},
		{Status(200).String(), "unknown"},
		{Status(3).String(), "unknown"},
		{WCRecvRDMAWithImm.String(), "RECV_RDMA_WITH_IMM"},
		{WCOpcode(99).String(), "unknown"},
		{(AttrAV | AttrSQPSN).String(), "AV SQ_PSN"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
