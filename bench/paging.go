package main

import (
	"xroce/bench/load"
	"xroce/bench/stage"
)

// The goodput of WRITEs to memory with on-demand paging, against memory without.

// pagingCases measure what paging costs when all pages are there, and what when each is
// touched for the first time.
func pagingCases() []benchCase {
	s := rawSockets(lossPathMTU + load.RCOverhead)
	s.Message = lossLength
	c := benchCase{
		name:    "paging",
		title:   "goodput of 64 KiB WRITEs to memory with on-demand paging",
		unit:    "bit/s",
		stage:   stage.Options{MTU: 1500, Threaded: true},
		sockets: s,
	}
	for _, v := range []struct{ name, write, target string }{
		{"registered", "write", "target"},
		{"paged, all present", "write", "target-paged"},
		{"paged, first touch", "write-walk", "target-fresh"},
	} {
		c.variants = append(c.variants, variant{
			name: v.name, needs: []backend{rc},
			run: written(v.write, v.target).times(8 * lossLength),
		})
	}
	c.control, c.reference = c.variants[0].name, c.variants[0].name
	return []benchCase{c}
}
