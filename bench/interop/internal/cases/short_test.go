package cases

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// kind is what of a case has to be in the short part.
func kind(c Case) string {
	s := fmt.Sprintf("%s, %s", c.Tool, c.Transport)
	if c.CM {
		s += ", rdma_cm"
	}
	switch {
	case c.Trace && c.Fault == Refused:
		return "refused trace of " + s
	case c.Trace:
		return "trace of " + s
	case c.Fault != NoFault:
		return fmt.Sprintf("%s, xroce is the %s", c.Fault, c.Role)
	}
	return fmt.Sprintf("%s, xroce is the %s", s, c.Role)
}

// TestShort: each tool, role and transport is in the short part once, and nothing that
// is met in the whole is left out of it.
func TestShort(t *testing.T) {
	got, want := map[string]int{}, map[string]bool{}
	for _, c := range inNamespace() {
		if ToolOf(c.Tool).TheirLack(c) == "" {
			want[kind(c)] = true
		}
	}
	for _, c := range Short() {
		if c.Card == "" {
			got[kind(c)]++
		}
	}
	for k := range want {
		n := got[k]
		if n == 0 {
			t.Errorf("not in short.txt: %s", k)
		}
		if n > 1 && !strings.HasPrefix(k, string(Loss)) {
			t.Errorf("%d times in short.txt: %s", n, k)
		}
	}
	for k := range got {
		if !want[k] {
			t.Errorf("in short.txt, but no peer can do it: %s", k)
		}
	}
}

// TestShortOnCards: the part has zero-copy, with each kind of operation and a reset, and nothing
// else that takes one more VM.
func TestShortOnCards(t *testing.T) {
	var got []Case
	for _, c := range Short() {
		if c.Card != "" {
			got = append(got, c)
		}
	}
	want := append(onCard(CardZeroCopy, cardNames), reset(CardZeroCopy, 1024, Detached))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("on cards there are %v, not %v", got, want)
	}
}

// TestShortIsFixed: the part is what is written down, in the order of the plan, each
// case once.
func TestShortIsFixed(t *testing.T) {
	var names []string
	for _, c := range Short() {
		names = append(names, c.Name())
	}
	if written := strings.Fields(shortNames); !slices.Equal(names, written) {
		for _, name := range written {
			if !slices.Contains(names, name) {
				t.Errorf("short.txt: there is no case %s", name)
			}
		}
		t.Errorf("short.txt is not in the order of the plan, or has a case twice")
	}
}

// TestShortVaries: over all tools the part has what the whole has.
func TestShortVaries(t *testing.T) {
	facets := func(list []Case) map[string]bool {
		m := map[string]bool{}
		for _, c := range list {
			m[fmt.Sprintf("path MTU %d, IPv%d", c.MTU, c.Family)] = true
			m[fmt.Sprintf("trace %v, xroce is the %s", c.Trace, c.Role)] = true
			if strings.HasPrefix(c.Tool, "ib_") && !c.Trace {
				m[fmt.Sprintf("rdma_cm %v, %d bytes", c.CM, c.Size)] = true
			}
			if strings.HasPrefix(c.Tool, "ib_atomic") && !c.Trace {
				m[strings.Join(c.Flags, " ")] = true
			}
		}
		return m
	}
	part := facets(Short())
	for facet := range facets(Plan()) {
		if !part[facet] {
			t.Errorf("nowhere in short.txt: %s", facet)
		}
	}
}
