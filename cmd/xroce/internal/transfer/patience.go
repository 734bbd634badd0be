package transfer

import "time"

// A patience is how long one end waits for the other.
type patience struct {
	exchange time.Duration // for each message before the data
	offer    time.Duration // of a sender: for the answer to what it offers (offerTime)
	chunk    time.Duration // for the next chunk, or until one is taken
	digest   time.Duration // of a receiver: for the message behind the data

	// work is for what the other end says when it has read or written a part of the file, and
	// a second more for each rate bytes of that, unless rate is 0 (forWork).
	work time.Duration
	rate int64
}

// ordinary is the patience of the commands. That a peer is gone is found out by the connection
// (msg.Options, Keepalive): these are bounds for one that is there, and stuck or up to no good.
var ordinary = patience{
	exchange: 10 * time.Second, offer: offerTime, chunk: 30 * time.Second,
	digest: 30 * time.Second, work: 10 * time.Minute, rate: 4 << 20,
}

// offerTime is for what a server does before it answers an offer: it waits for who has the part of
// the file to give that up (claimTime), then for room (roomTime), and reads directories. Who waits
// no longer than that comes again before it is answered, and loses its place to itself.
const offerTime = claimTime + roomTime + 14*time.Second

// orOrdinary is what a test wants, or the patience of the commands.
func (p patience) orOrdinary() patience {
	if p == (patience{}) {
		return ordinary
	}
	return p
}

// forWork is how long to wait for what the other end says when it has read or written so many
// bytes. While it makes their digest it says nothing, and a file may have terabytes.
func (p patience) forWork(bytes int64) time.Duration { return p.work + p.reading(bytes) }

// reading is how long it may take to read or write so many bytes, beside what anything may take.
func (p patience) reading(bytes int64) time.Duration {
	if p.rate == 0 {
		return 0
	}
	return time.Duration(bytes/p.rate) * time.Second
}
