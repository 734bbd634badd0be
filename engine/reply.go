package engine

import "xroce/roce"

// A reply is what a queue in the background mode knows of how its caller answers. In direct mode
// a round that received leaves the sending to the next, so that the acknowledgement leaves with
// what the caller posts, in one system call. Beside a driver that is for callers who do answer:
// if one goes about other work, the driver sends, but late, and the next rounds send at once.
type reply struct {
	awaited bool      // the round is one of a caller, and the driver is away
	since   roce.Time // when a round left the sending to the next
	prompt  uint16    // how many rounds still send at once
	late    uint16    // how many will, when the caller is late again
}

// How long the sending may wait for a reply, and for how many rounds it does not when that was
// late, once and at most.
const (
	replyTime   = 50 * roce.Microsecond
	leastPrompt = 64
	mostPrompt  = 1 << 12
)

// waits reports whether a round that received leaves sending to the next.
func (r *reply) waits(now roce.Time) bool {
	if !r.awaited {
		return false
	}
	if r.prompt > 0 {
		r.prompt--
		return false
	}
	r.since = now
	return true
}

// came notes that what a round had left is being sent.
func (r *reply) came(now roce.Time) {
	if now-r.since <= replyTime {
		r.late = leastPrompt
		return
	}
	r.prompt = max(r.late, leastPrompt)
	r.late = min(2*r.prompt, mostPrompt)
}
