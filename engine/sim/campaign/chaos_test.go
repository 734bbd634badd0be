package campaign

import (
	"fmt"
	"reflect"
	"testing"

	"xroce/roce"
)

// trouble is what goes wrong in these tests.
type trouble int

func (t trouble) String() string { return fmt.Sprintf("trouble%d", int(t)) }

// TestSchedule begins in order, ends in order, and when it gets quiet ends all.
func TestSchedule(t *testing.T) {
	list := []Chaos[trouble]{
		{At: 20, For: 100, What: 2},
		{At: 10, For: 5, What: 1},
		{At: 20, For: 1, What: 3},
		{At: 90, What: 4},
	}
	Sort(list)
	var s Schedule[trouble]
	s.Chaos = list
	var saw []string
	times := func(quiet bool) (list []roce.Time) {
		s.Times(quiet, func(t roce.Time) { list = append(list, t) })
		return list
	}
	apply := func(now roce.Time, quiet bool) {
		s.Apply(now, quiet, func(c Chaos[trouble]) {
			saw = append(saw, fmt.Sprintf("%d: %s", now, c.What))
			s.Later(c.At+c.For, func() { saw = append(saw, fmt.Sprintf("end of %s", c.What)) })
		})
	}
	apply(9, false)
	if got := times(false); !reflect.DeepEqual(got, []roce.Time{10}) {
		t.Errorf("times are %v", got)
	}
	apply(10, false)
	apply(20, false)
	if got := times(false); !reflect.DeepEqual(got, []roce.Time{120, 21, 90}) {
		t.Errorf("times are %v", got)
	}
	apply(21, false)
	apply(95, true)
	if got := times(true); got != nil {
		t.Errorf("when it is quiet: %v", got)
	}
	want := []string{
		"10: trouble1", "end of trouble1", "20: trouble2", "20: trouble3", "end of trouble3",
		"end of trouble2",
	}
	if !reflect.DeepEqual(saw, want) {
		t.Errorf("happened: %q, want %q", saw, want)
	}
	if text := list[0].String(); text != "trouble1 0 0 at 0.010us for 0.005us" {
		t.Errorf("it is called %q", text)
	}
}
