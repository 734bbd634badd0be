// Package transfer moves files from one machine to another as messages (package engine/msg),
// which the engine sends eagerly, through large slots or by rendezvous, as their size asks for.
//
// What the two ends say is JSON, in messages of one tag:
//
//	client                                  server
//	  hello: protocol, nonce  ---------------->
//	  <----------  challenge: nonce, is a token needed
//	  put: path, size, mode, time  ----------->   admits, opens a temporary file
//	  <---------------  path, bytes that are held
//	  [digest of these bytes  ---------------->   compares]
//	  [<-------------  bytes that are gone on behind]
//	  ========= chunks, of another tag =======>   written as they come
//	  SHA-256  ------------------------------->   compares, syncs, renames
//	  <-----------------------------------  SHA-256
//	  ... more files, and directories (dir) ...
//	  end  ----------------------------------->
//
// A get turns the roles around: the server says what there is, the client what it holds and the
// digest of that, and the chunks come from the server, if its Store lets files be read.
//
// With a token, each message from the put on has a code in front that only those can
// make who know it (type seal); the SHA-256 behind the data so vouches for that. Nothing
// is encrypted.
//
// Both ends keep a few chunks, never the file. A receiver posts a receive when the chunk before
// is in the file, so a sender goes as fast as the slower of disk and wire. The file appears under
// its name whole or not at all.
//
// What a lost connection leaves of a file has a name by which its sender finds it again (type
// remnant). It is gone on with only when both ends make the same digest of it, and wait for each
// other for as long as reading it may take (type patience). A Client makes another connection and
// does that by itself.
//
// A client that lost the connection before the verdict cannot know whether its file is there. The
// Store remembers for a while what it has whole and whose sender may not know (type receipt): who
// asks again finds all bytes held, and is done when both ends make the same digest of them.
//
// The Store says what a peer may do with a directory. A server keeps connections of strangers in a
// Lobby. One that is slow gives way to others there, and gives back the room that is set aside for
// its file when another has none (type want). How slow it is, is judged by the last minute (type
// pace), without the time in which it waits for us because of what it has sent (type recesses):
// what one that fetches has of a file is its own word. Functions run on the goroutine that called
// them, and wait for the other end a bounded time at each step.
package transfer
