// Package campaign is what the trials of seeds have in common: package trial, which is about
// queue pairs, and msgtrial, which is about messages.
//
// A trial runs one seed, which decides everything, under virtual time. It takes each frame of
// the network and what else happens into a Trace, has a Schedule make things go wrong beside the
// frames, and ends with a Result: a hash of all that happened, and the Violation of an
// Invariant, if there was any. A Campaign is a range of seeds:
//
//	c := &campaign.Campaign[Stats]{From: 1, To: 1000, Workers: 2, Twice: 32}
//	sum := c.RunSeeds(ctx, &campaign.Trial[Stats]{Run: run, Add: (*Stats).Add, Determinism: same})
//
// What a seed draws, what the applications do and what must hold is the trial's own, and so is
// what it counts, the Stats.
//
// A run shares nothing with others, so a Campaign has several of them at once. All else here
// belongs to one run and is not safe for concurrent use.
package campaign
