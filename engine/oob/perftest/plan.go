package perftest

import (
	"bytes"
	"fmt"
)

// PlanLen is the length of the message of Plan in bytes: text and NULs.
const PlanLen = 128

// Plan tells the peer what this end is about to do, in at most PlanLen-1 printable ASCII
// characters, and learns the same of it. It is ours: only when Versions says so do both
// ends know it. Each end has the other's plan before it can object to it.
func (c *Conn) Plan(local string) (string, error) {
	var out, in [PlanLen]byte
	if len(local) >= PlanLen {
		return "", fmt.Errorf("%w: a plan of %d characters", ErrMessage, len(local))
	}
	copy(out[:], local)
	if err := c.swap("plan", out[:], in[:]); err != nil {
		return "", err
	}
	text, _, ok := bytes.Cut(in[:], []byte{0})
	if !ok || !printable(text) {
		return "", fmt.Errorf("%w: %q instead of a plan", ErrMessage, in[:])
	}
	return string(text), nil
}
