package match

import "errors"

// Errors of this package: what its caller did wrong. Nothing has changed when one of
// them is returned.
var (
	// ErrOwner says that the node was not made ready by Init, so that whoever took it
	// would not find what it stands for.
	ErrOwner = errors.New("match: node without an owner")
	// ErrQueued says that the node is queued already.
	ErrQueued = errors.New("match: node is queued already")
	// ErrPeer says that the peer is not one of this matcher, or no more.
	ErrPeer = errors.New("match: no such peer")
	// ErrKnown says that the peer is one of a matcher already.
	ErrKnown = errors.New("match: peer is known already")
)
