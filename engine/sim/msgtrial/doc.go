// Package msgtrial puts messages on trial, as package trial does with the engine below them:
// each seed is a whole run of 2 to 8 nodes under virtual time, with the production engine and
// the machine of roce/msg, over a network that is much worse than any real one.
//
//	result := msgtrial.Run(ctx, 17, msgtrial.Options{})
//
// The seed decides everything: who is connected with whom, in which role and how often, how each
// endpoint is configured, what is sent by which protocol, to which level, in how many pieces;
// which receives there are, from one peer or from any, with which tags and masks, how long, and
// which of them are taken back; when slots are renewed and connections closed; when memory is
// there, or refused; what the network does to frames; and what else goes wrong: see Havoc. In a
// third of the seeds nodes have two or three adapters, and connections rails over them.
//
// A run has three parts. In the first one all faults are on. In the second one, the quiet phase,
// there are none, and all that was sent on connections that live must be received. In the third
// one all is closed in order, and nothing may be left.
//
// # The model
//
// The model knows what was posted, in which order, and what came back. It never looks into the
// machine, and does not know when a message arrived; so it cannot say which receive each message
// must have. But whatever the network did, MPI's rules leave marks that can be seen afterwards,
// and these are checked at each completion: see order. A message carries its number in the upper
// bits of its tag, where no receive looks, and its bytes follow from it. What came back is
// overwritten, or watched until the end: nobody may use it any more.
//
// Errors are not forgiven because there are faults: judgeEnd has the rules for what ends a
// connection, and a message fails with its connection only. A rail is lost for a reason, too, and
// a connection of several ends when the last one is lost and none comes back in time.
//
// # What stands in for engine/cm and engine/msg
//
// A node is the owner of a machine: it joins it with queue pairs as engine/msg does, but on the
// goroutine of the run, and gives it memory by engine/msg.Provide at the time that the seed
// says. Hellos go by hand, with the queue pairs' numbers; either end may learn of the connection
// first, and a peer that hangs up is heard of later. Of a rail nothing is heard while its wire is
// cut, nor that its adapter is gone: who uses it has to notice. Who has dialled dials a rail again.
//
// A run is one goroutine and shares nothing with others, so Campaign has several of them at once.
// It reads no clock, and nothing outside of the process.
package msgtrial
