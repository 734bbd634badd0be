package msg

import (
	"testing"

	"xroce/roce/clock"
)

// TestLearnedCostDecides: each way is tried first, the cheaper one is taken from then on but for
// one message in so many, and when costs change so does the choice.
func TestLearnedCostDecides(t *testing.T) {
	var k cost
	price := [ways]clock.Time{byRendezvous: 30, byLarge: 20}
	run := func(n int) (took [ways]int) {
		for range n {
			way := k.choose()
			took[way]++
			k.add(way, price[way]*clock.Microsecond)
		}
		return took
	}
	if took := run(2 * learnFirst); took != [ways]int{learnFirst, learnFirst} {
		t.Errorf("first %v", took)
	}
	if took := run(10 * learnAgain); took[byRendezvous] != 10 {
		t.Errorf("large slots are cheaper: %v", took)
	}
	price[byLarge] = 50
	run(10 * learnAgain)
	if took := run(10 * learnAgain); took[byLarge] != 10 {
		t.Errorf("large slots are dearer: %v", took)
	}
}

// TestAutoLearnsFromWhatItSends: with policy EnlargeAuto both ways are measured on messages of a
// class, and the reason of the choice says so; other classes and short messages do not count.
func TestAutoLearnsFromWhatItSends(t *testing.T) {
	d := newDuo(t, Config{Policy: EnlargeAuto})
	seen := map[Protocol]int{}
	for n := range 40 {
		s := d.send(pattern(n, 3000))
		seen[s.Choice.Protocol]++
		if n < learnFirst && s.Choice.Protocol != Get {
			t.Errorf("message %d goes by %v", n, s.Choice)
		}
		if s.Choice.Why != Measured && s.Choice.Why != HasLarge {
			t.Errorf("message %d goes by %v", n, s.Choice)
		}
	}
	if seen[Get] < learnFirst || seen[Provisioned] < learnFirst ||
		seen[Get]+seen[Provisioned] != 40 {
		t.Errorf("%v", seen)
	}
	k := &d.ca.costs.classes[0]
	if k.measured[byRendezvous] < learnFirst || k.measured[byLarge] < learnFirst ||
		k.mean[byRendezvous] <= 0 || k.mean[byLarge] <= 0 {
		t.Errorf("%+v", k)
	}
	d.send(pattern(1, 1024))
	if d.ca.costs.classes[1].chosen != 0 {
		t.Error("another class has learned")
	}
	if s := d.send(pattern(1, 300_000)); s.Choice.Why != BeyondLarge {
		t.Errorf("what fits no class goes by %v", s.Choice)
	}
}
