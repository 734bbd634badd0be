// Package control lets another process of the same user look into this one: a unix
// socket in a directory that only the user can enter, one socket for each process. A program
// that listens in Directory and adds its devices is seen by xroce res:
//
//	server, err := control.Listen(control.Directory())
//	...
//	server.Add(device)
//	defer server.Close()
//
// A connection carries one request and one answer, each a JSON document in a line that says
// its version. Behind the answer to a request for packets come these, as pcapng, until the
// client sends something or ends to send.
//
// Whoever connects may be anybody who runs as the same user, which the kernel vouches
// for at both ends, so nothing that comes is trusted: requests have a size and a
// deadline, and no more than a few are served at once, of captures as well. Of connections that
// wait the oldest gives way, first of those that ask for nothing, so that a thousand of them keep
// nobody from an answer. Answers hold
// numbers of objects, never their contents, and keys only for who asks for them; packets hold
// what anybody on the wire can read.
//
// A Server has one goroutine that listens and one for each client that is served; it asks
// the devices that it was told of and changes nothing there. Its Close removes the socket.
package control
