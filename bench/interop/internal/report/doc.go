// Package report writes the tables of docs/interop.md: what came of the cases, with and
// without faults, and how xroce differs from Soft-RoCE packet by packet, with the reasons
// that package dialogue has.
//
// Update reads and writes that one file; the rest makes text of outcomes.
//
// It runs nothing and is not for concurrent use.
package report
