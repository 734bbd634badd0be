// Command grpcecho is gRPC over streams of package engine/msg: a server on a StreamListener, a
// client that dials with Endpoint.DialContext, and between them a simulated network. It echoes
// texts one at a time, a message of a megabyte, and both ways at once.
//
// It is a module of its own, because of what gRPC needs. It needs no root and no network
// interface; engine.Open in place of engine.OpenLink gives an endpoint on one.
package main
