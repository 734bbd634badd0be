package control

import (
	"slices"
	"testing"
)

// TestTwoDevicesOfOneName: each has a name of its own, under which it is told of and captured.
func TestTwoDevicesOfOneName(t *testing.T) {
	s, dir := listen(t)
	first, toFirst := shown(t, s)
	_, toSecond := shown(t, s)
	names := func() (list []string) {
		t.Helper()
		answers, err := Ask(t.Context(), dir, 0, 1, false)
		if err != nil || len(answers) != 1 {
			t.Fatalf("%+v, %v", answers, err)
		}
		for i := range answers[0].Devices {
			list = append(list, answers[0].Devices[i].Device)
		}
		return list
	}
	if got := names(); !slices.Equal(got, []string{"xr1", "xr1#2"}) {
		t.Errorf("%q", got)
	}
	p, err := Watch(t.Context(), dir, Query{Device: "xr1#2"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	toFirst.send(1)
	toSecond.send(2)
	got, err := p.Next()
	if err != nil || p.Interface() != "xr1#2" || got.Head[59] != 2 {
		t.Errorf("%s: %+v, %v", p.Interface(), got, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(); !slices.Equal(got, []string{"xr1#2"}) {
		t.Errorf("without the first: %q", got)
	}
}
