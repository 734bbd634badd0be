// Package analyze says what happened on the connections of a capture: which operations there were
// and how long they took, what was sent again and why, what the answers said, what of it is against
// the architecture, and in plain words what was wrong.
//
// An Analyzer is fed the packets of a capture in their order, dissected by package roce/dissect,
// and makes a Report at the end. It knows nothing but the packets, so it guesses where an end has
// certainty: which two queue pairs are one connection is taken from the connection manager where
// that is in the capture, else from PSNs that answer each other; why a packet came again is taken
// from what came before it. What a capture lacks (it began later, it saw one direction only, it was
// taken before or behind the place where packets are lost) makes the guess worse, and Report says
// so.
//
// The memory of an Analyzer is bounded whatever the capture has: it follows the first MaxFlows
// directions, and of each it keeps a window of outstanding operations, and curves of at most
// maxBuckets values and maxPoints points, which become coarser as time goes on. It does no I/O and
// belongs to one caller at a time.
package analyze
