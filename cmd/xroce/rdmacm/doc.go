// Package rdmacm has the conversations of the rdma_cm examples of rdma-core, each in
// both roles: either end may be that program (librdmacm/examples/rping.c).
//
//	Rping     the client lends the server memory, which the server READs and WRITEs
//
// A conversation ends with DREQ and DREP, and both ends wait for the time-wait. Who
// is hung up on in the middle returns an error that wraps cm.ErrHungUp of engine/cm.
//
// What the originals print goes to Station.Say, in their words and order.
package rdmacm
