// Package timeout says how long a test waits before it calls something late.
//
// A limit is written for a machine that does nothing else. What starts the tests
// may find that this one is busy (.ci/calibrate) and says by how much all limits
// grow, in the environment variable XROCE_TIMEOUT_MULTIPLIER: a whole number, 1
// when it is not set. What is late by its own account, such as a retry counter
// that a protocol defines, does not grow.
//
// It is for tests, and for programs that are tests as a whole: bench and bench/interop.
package timeout
