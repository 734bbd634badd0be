// Package order is what the host of a Soft-RoCE VM and the agent in it say to
// each other, on a stream between them: one JSON value a line.
package order
