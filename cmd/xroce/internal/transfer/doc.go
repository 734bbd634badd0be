// Package transfer moves a file from one machine to another by RDMA WRITE.
//
// The two ends talk over TCP, in messages that are a line of JSON each:
//
//	sender                                  receiver
//	  hello: protocol, nonce  ---------------->
//	  <----------  challenge: nonce, is a token needed
//	  offer: endpoint, path, size, mode, MTU ->   admits, opens a temporary file
//	  <---------  accept: endpoint, address, key   its QP is connected
//	  ====== RDMA WRITE with immediate =======>   one chunk a slot
//	  <===== SEND with immediate: credit ======   the chunk is in the file
//	  finish: SHA-256  ----------------------->   compares, syncs, renames
//	  <----------------------------  verdict
//
// With a token, each message from the offer on has a code in front that only those can
// make who know it (type seal); the SHA-256 in finish so vouches for the data. Nothing
// is encrypted.
//
// Both ends keep a few registered chunks, never the file. The immediate value of
// a WRITE is the number of its chunk, which also names its slot; a slot is
// written again only when its credit has come back. The file appears under its
// name whole or not at all.
//
// The offer names the extensions of the transport that the sender can do, accept
// those of them that the receiver can do too: these the connection has.
//
// The sender reads one file, the receiver writes one to the Store that it is given, which
// says what a peer may do there. Each uses the device and the TCP connection that it is
// given, on the goroutine that called it, and waits for the other end a bounded time at
// each step. A server keeps connections of strangers in a Lobby.
package transfer
