// Package xsktest helps to test code on xsk sockets.
//
// Kernel is an in-memory AF_XDP: real ring memory and a pump that plays the
// kernel, joined to another Kernel by a wire. It runs the production socket code
// without privileges and under the race detector, with index words that start
// just before their wrap.
//
// Pair and Attach are for tests that need root: a lossless veth pair in two
// fresh network namespaces, and an XDP program that takes every frame. Root
// tests skip with the reason when they cannot run, and fail instead when the
// environment variable XROCE_ROOT_TESTS is 1.
//
// It is not internal to xsk, because the tests of engine, cmd and bench use it as well.
package xsktest
