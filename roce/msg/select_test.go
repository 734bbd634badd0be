package msg

import "testing"

// TestChoose goes through the rows of the table of choices, in their order.
func TestChoose(t *testing.T) {
	usual := Situation{
		EagerLimit: 1024, Large: []int{8192, 65536}, Keys: true, Reads: true,
	}
	with := func(change func(*Situation)) Situation {
		s := usual
		change(&s)
		return s
	}
	eager := Choice{Protocol: Eager, Why: Fits, Rule: Fits}
	for name, test := range map[string]struct {
		s               Situation
		length, longest int
		want            Choice
	}{
		"nothing":           {usual, 0, 0, eager},
		"as long as a slot": {usual, 1024, 1024, eager},
		"a byte more":       {usual, 1025, 1000, Choice{Provisioned, Enlarge, TooLong, 8192}},
		"in one piece": {
			usual, 1025, 1025, Choice{Provisioned, Enlarge, ElementTooLong, 8192},
		},
		"of the next class":  {usual, 8193, 1, Choice{Provisioned, Enlarge, TooLong, 65536}},
		"beyond all classes": {usual, 65537, 1, Choice{Get, BeyondLarge, TooLong, 0}},
		"slots that are here": {
			with(func(s *Situation) { s.Ready = 8192 }),
			8192, 1,
			Choice{Provisioned, HasLarge, TooLong, 8192},
		},
		"slots that are in use, to share": {
			with(func(s *Situation) { s.Ready, s.Full = 65536, true }),
			32768, 1,
			Choice{Provisioned, HasLarge, TooLong, 65536},
		},
		"slots that are in use": {
			with(func(s *Situation) { s.Ready, s.Full = 65536, true }),
			32769, 1,
			Choice{Get, InUse, TooLong, 0},
		},
		"slots that are in use, no keys": {
			with(func(s *Situation) { s.Ready, s.Full, s.Keys = 65536, true, false }),
			32769, 1,
			Choice{Provisioned, HasLarge, TooLong, 65536},
		},
		"slots that are in use, and cheaper": {
			with(func(s *Situation) { s.Ready, s.Full, s.Measured = 65536, true, Provisioned }),
			32769, 1,
			Choice{Provisioned, HasLarge, TooLong, 65536},
		},
		"slots that are in use, and forced": {
			with(func(s *Situation) { s.Ready, s.Full, s.Forced = 65536, true, Provisioned }),
			32769, 1,
			Choice{Provisioned, Forced, TooLong, 65536},
		},
		"refused": {
			with(func(s *Situation) { s.Refused = 8192 }),
			5000, 1,
			Choice{Get, Refused, TooLong, 0},
		},
		"a size below": {
			with(func(s *Situation) { s.Refused = 65536 }),
			5000, 1,
			Choice{Provisioned, Enlarge, TooLong, 8192},
		},
		"never": {
			with(func(s *Situation) { s.Policy = EnlargeNever }),
			5000, 1,
			Choice{Get, PolicyNever, TooLong, 0},
		},
		"not yet": {with(func(s *Situation) {
			s.Policy, s.After, s.Seen = EnlargeAfter, 3, 2
		}), 5000, 1, Choice{Get, PolicyWaits, TooLong, 0}},
		"often enough": {with(func(s *Situation) {
			s.Policy, s.After, s.Seen = EnlargeAfter, 3, 3
		}), 5000, 1, Choice{Provisioned, Enlarge, TooLong, 8192}},
		"no READs": {
			with(func(s *Situation) { s.Reads = false }),
			1 << 20, 1,
			Choice{Put, NoReads, TooLong, 0},
		},
		"no keys": {
			with(func(s *Situation) { s.Keys = false }),
			1 << 20, 1,
			Choice{Fragments, NoKeys, TooLong, 0},
		},
		"large was cheaper": {
			with(func(s *Situation) { s.Measured = Provisioned }),
			5000, 1,
			Choice{Provisioned, Measured, TooLong, 8192},
		},
		"get was cheaper": {with(func(s *Situation) {
			s.Measured, s.Ready = Get, 8192
		}), 5000, 1, Choice{Get, Measured, TooLong, 0}},
		"crowded": {
			with(func(s *Situation) { s.Crowded = true }),
			5, 5,
			Choice{Get, Crowded, Fits, 0},
		},
		"crowded, no keys": {
			with(func(s *Situation) { s.Crowded, s.Keys = true, false }),
			5, 5, eager,
		},
		"forced get": {
			with(func(s *Situation) { s.Forced = Get }),
			5, 5,
			Choice{Get, Forced, Fits, 0},
		},
		"forced put": {
			with(func(s *Situation) { s.Forced = Put }),
			5, 5,
			Choice{Put, Forced, Fits, 0},
		},
		"forced, no READs": {
			with(func(s *Situation) { s.Forced, s.Reads = Get, false }),
			5, 5,
			Choice{Put, NoReads, Fits, 0},
		},
		"forced fragments": {
			with(func(s *Situation) { s.Forced = Fragments }),
			5, 5,
			Choice{Fragments, Forced, Fits, 0},
		},
		"forced eager": {
			with(func(s *Situation) { s.Forced = Eager }),
			5, 5,
			Choice{Eager, Forced, Fits, 0},
		},
		"eager, but too long": {
			with(func(s *Situation) { s.Forced = Eager }),
			5000, 1,
			Choice{Fragments, TooLong, TooLong, 0},
		},
		"forced large": {
			with(func(s *Situation) { s.Forced = Provisioned }),
			5, 5,
			Choice{Provisioned, Forced, Fits, 8192},
		},
		"large, but too long": {
			with(func(s *Situation) { s.Forced = Provisioned }),
			65537, 1,
			Choice{Get, BeyondLarge, TooLong, 0},
		},
		"large, but refused": {with(func(s *Situation) {
			s.Forced, s.Refused = Provisioned, 8192
		}), 5, 5, Choice{Get, Refused, Fits, 0}},
	} {
		if got := test.s.Choose(test.length, test.longest); got != test.want {
			t.Errorf("%s: %+v, not %+v", name, got, test.want)
		}
	}
}
