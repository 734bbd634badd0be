package match

// A Peer is one that messages come from, and a source that receives may name. It is
// embedded in what the caller has for a connection, and known to a matcher between Add
// and Forget. R and M are those of the Matcher.
type Peer[R, M any] struct {
	in *Matcher[R, M] // nil when it is not known
	id uint64         // never used again, unlike its address

	exact, masked list[Receive[R, M]] // that name this source
	unexpected    list[Message[R, M]]
	messages      int
	bytes         uint64
}

// Unexpected returns how many messages of the peer wait for a receive, and the bytes
// that are kept for them, as told to Arrive. Both are for the caller's budget.
func (p *Peer[R, M]) Unexpected() (messages int, bytes uint64) { return p.messages, p.bytes }
