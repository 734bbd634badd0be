// Package affinity keeps threads on processors.
package affinity
