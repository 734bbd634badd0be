package transfer

import "time"

// A patience is how long one end waits for the other.
type patience struct {
	exchange time.Duration // for each message before the data
	chunk    time.Duration // for the next chunk, or until one is taken
	digest   time.Duration // of a receiver: for the message behind the data
	verdict  time.Duration // of a sender: the receiver has yet to write it all to disk
}

// ordinary is the patience of the commands.
var ordinary = patience{
	exchange: 10 * time.Second, chunk: 30 * time.Second, digest: 30 * time.Second,
	verdict: 10 * time.Minute,
}

// orOrdinary is what a test wants, or the patience of the commands.
func (p patience) orOrdinary() patience {
	if p == (patience{}) {
		return ordinary
	}
	return p
}
