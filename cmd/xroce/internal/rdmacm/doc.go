// Package rdmacm has the conversations of the rdma_cm examples of rdma-core, each in
// both roles: either end may be that program (librdmacm/examples/{rping,cmatose,
// udaddy,rdma_server,rdma_client}.c).
//
//	Rping     the client lends the server memory, which the server READs and WRITEs
//	Cmatose   SENDs both ways over several connections; the server sends first
//	Udaddy    datagrams both ways; the server learns from the first whom to answer
//	Simple    one SEND each way
//
// A conversation ends with DREQ and DREP, and both ends wait for the time-wait. Who
// is hung up on in the middle returns an error that wraps cm.ErrHungUp of engine/cm.
//
// What the originals print goes to Station.Say, in their words and order.
//
// A conversation uses the Station's device, through its connection manager, and runs on the
// goroutine that called it; a server that has several clients at once has one for each.
package rdmacm
