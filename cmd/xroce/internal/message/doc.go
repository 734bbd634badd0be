// Package message measures messages between two ends, as perftest measures verbs: a ping-pong,
// a stream of messages one way, and calls that are answered; and says of a message how it would
// travel and what that costs.
//
// Both ends tell each other first what they are about to do, and neither begins when they differ.
// Every byte is compared with what was sent, unless both were told not to. It uses the endpoint
// that it is given, prints nothing, and has a goroutine a connection while a test runs.
package message
