package main

import (
	"xroce/bench/ratio"
	"xroce/bench/result"
)

// scaled is a spread in another unit.
func scaled(s ratio.Spread, by float64) ratio.Spread {
	s.Q1, s.Median, s.Q3 = s.Q1*by, s.Median*by, s.Q3*by
	s.Smallest, s.Largest = s.Smallest*by, s.Largest*by
	return s
}

// overlapPanels have how long a message takes while the application is away.
func overlapPanels(d *result.Document) ([]*panel, error) {
	c, err := need(d, "msg-overlap")
	if err != nil {
		return nil, err
	}
	p := newPanel("1 MiB posted, 1 ms of something else, then waited for", "", "whole time, ms")
	alone := scaled(c.Values("ours"), 1e-6)
	sum := alone
	sum.Q1, sum.Median, sum.Q3 = alone.Q1+1, alone.Median+1, alone.Q3+1
	list := []bar{{"alone", sky, alone}, {"one after\nthe other", orange, sum}}
	for _, v := range []struct {
		variant, name string
		ink           ink
	}{
		{"asleep meanwhile", "asleep", green},
		{"computing meanwhile", "computing", blue},
		{"UCX over TCP, alone", "UCX alone", purple},
		{"UCX over TCP, computing meanwhile", "UCX\ncomputing", red},
	} {
		if s := c.Values(v.variant); s.N > 0 {
			list = append(list, bar{v.name, v.ink, scaled(s, 1e-6)})
		}
	}
	if alone.N == 0 || len(list) < 3 {
		return nil, errMissing
	}
	return []*panel{p}, p.bars(list)
}
