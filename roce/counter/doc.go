// Package counter declares every counter of the transport once: its name, unit
// and meaning. Names are those of rxe's hw_counters and of mlx5 where the event
// is the same, so that existing dashboards keep working.
//
// A Set belongs to one queue and is written under that queue's progress lock.
//
// The package imports nothing and touches nothing but the set that it is handed.
package counter
