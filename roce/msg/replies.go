package msg

// This file is about what a peer makes us say. It is told by control messages that wait for the
// peer to take those before them, and one frame may ask for thousands.

// maxReplies is how many control messages may wait to be sent for frames to be looked at: behind
// that they stay in their slots.
const maxReplies = 1024

// toSay is how many control messages wait to be sent.
func (c *Conn) toSay() int { return c.out.n - c.framesOut }

// mute reports whether so much is to be said that no frame is looked at.
func (c *Conn) mute() bool { return c.toSay() >= maxReplies }

// mostToSay is how many control messages may wait to be sent: beside what frames ask for, what is
// said of rendezvous, and some more. A peer that wants more said does not listen.
func (c *Conn) mostToSay() int { return 2*maxReplies + 8*c.endpoint.config.Rendezvous }
