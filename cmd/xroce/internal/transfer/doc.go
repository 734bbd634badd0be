// Package transfer moves a file from one machine to another by RDMA WRITE.
//
// The two ends exchange their QPs over TCP as ibv_rc_pingpong does (package
// engine/oob) and go on with one JSON object a message on the same connection:
//
//	sender                                  receiver
//	  endpoint  ------------------------------>
//	  <------------------------------  endpoint
//	  offer: path, size, mode, path MTU  ----->   opens a temporary file
//	  <---------  accept: address, key, slots     its QP is connected
//	  ====== RDMA WRITE with immediate =======>   one chunk a slot
//	  <===== SEND with immediate: credit ======   the chunk is in the file
//	  finish: SHA-256  ----------------------->   compares, syncs, renames
//	  <----------------------------  verdict
//
// Both ends keep a few registered chunks, never the file. The immediate value of
// a WRITE is the number of its chunk, which also names its slot; a slot is
// written again only when its credit has come back. The file appears under its
// name whole or not at all.
//
// The offer names the extensions of the transport that the sender can do, accept
// those of them that the receiver can do too: these the connection has.
//
// The sender reads one file, the receiver writes one below the directory that it is given
// and no other. Each uses the device and the TCP connection that it is given, on the
// goroutine that called it.
package transfer
