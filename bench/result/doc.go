// Package result is what a run of the benchmarks leaves: the raw rows with
// everything that belongs beside them, as JSON, and tables of ratios made from
// them.
//
// The tables are computed from the rows each time, so a stored document can be
// read again with other eyes.
package result
