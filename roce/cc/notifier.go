package cc

import "xroce/roce/clock"

// A Notifier is the notification point of a flow: it decides which marked packets are
// answered with a CNP (section 3.1 of the paper). The zero value has sent none.
type Notifier struct {
	at   clock.Time // of the last CNP
	sent bool
}

// Marked takes a packet that a switch has marked, and reports whether a CNP is to be sent:
// one at once, and no more than one in an interval.
func (n *Notifier) Marked(now, interval clock.Time) bool {
	if n.sent && now-n.at < interval {
		return false
	}
	n.at, n.sent = now, true
	return true
}
