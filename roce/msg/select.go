package msg

// A Situation is what a choice of protocol depends on.
type Situation struct {
	EagerLimit int      // of the peer's slots
	Forced     Protocol // or Auto
	Policy     Policy
	After      int   // of EnlargeAfter: messages that there must have been
	Seen       int   // messages too long for a slot until now
	Large      []int // sizes of large slots that there may be, ascending
	Ready      int   // size of the large slots that there are, 0 for none
	Full       bool  // and all of them are in use
	Refused    int   // the smallest size that the peer had no memory for, 0 for none
	Keys       bool  // memory of both ends can be named by keys
	Reads      bool  // the peer lets us have it READ
	Crowded    bool  // it has waited too long for a slot
	// Measured is what has cost the least until now, Provisioned or Get for any rendezvous;
	// Auto when that is not to decide.
	Measured Protocol
}

// A Choice is a protocol and why.
type Choice struct {
	Protocol Protocol
	Why      Reason
	Rule     Reason // Fits, TooLong or ElementTooLong: what the threshold says of it
	Slot     int    // of Provisioned: the size of the slots that are to be there, at least
}

// Choose says how a message travels that is length bytes long, the longest of whose pieces
// has longest bytes. It is deterministic and depends on its arguments alone.
func (s *Situation) Choose(length, longest int) Choice {
	rule := Fits
	switch {
	case longest > s.EagerLimit:
		rule = ElementTooLong
	case length > s.EagerLimit:
		rule = TooLong
	}
	c := s.choose(length, rule == Fits)
	c.Rule = rule
	return c
}

// choose is Choose for a message that fits a small slot, or does not.
func (s *Situation) choose(length int, small bool) Choice {
	switch {
	case length == 0:
		return Choice{Protocol: Eager, Why: Fits}
	case s.Forced != Auto:
		return s.force(length, small)
	case small && s.Crowded && s.Keys:
		return s.rendezvous(Crowded)
	case small:
		return Choice{Protocol: Eager, Why: Fits}
	}
	c, enlarge := s.large(length)
	if enlarge {
		return c
	}
	return s.rendezvous(c.Why)
}

// large says whether large slots are for a message of that length, or else why they are not.
func (s *Situation) large(length int) (c Choice, enlarge bool) {
	if s.Measured == Get {
		return Choice{Why: Measured}, false
	}
	if length <= s.Ready {
		if s.Full && length > sharing && s.Keys && s.Measured == Auto {
			return Choice{Why: InUse}, false
		}
		return Choice{Protocol: Provisioned, Why: HasLarge, Slot: s.Ready}, true
	}
	size := s.class(length)
	switch {
	case size == 0:
		return Choice{Why: BeyondLarge}, false
	case s.Refused != 0 && size >= s.Refused:
		return Choice{Why: Refused}, false
	case s.Policy == EnlargeNever:
		return Choice{Why: PolicyNever}, false
	case s.Policy == EnlargeAfter && s.Seen < s.After:
		return Choice{Why: PolicyWaits}, false
	}
	why := Enlarge
	if s.Measured == Provisioned {
		why = Measured
	}
	return Choice{Protocol: Provisioned, Why: why, Slot: size}, true
}

// class returns the smallest size of large slots that such a message fits, 0 when none does.
func (s *Situation) class(length int) int {
	for _, size := range s.Large {
		if length <= size {
			return size
		}
	}
	return 0
}

// rendezvous chooses among the protocols that need no slot, for a reason.
func (s *Situation) rendezvous(why Reason) Choice {
	switch {
	case !s.Keys:
		return Choice{Protocol: Fragments, Why: NoKeys}
	case !s.Reads:
		return Choice{Protocol: Put, Why: NoReads}
	}
	return Choice{Protocol: Get, Why: why}
}

// force is Choose when the protocol is not the machine's to choose. What cannot be goes in
// fragments, or in a slot when it fits one, and the reason says so.
func (s *Situation) force(length int, small bool) Choice {
	switch s.Forced {
	case Eager:
		if !small {
			return Choice{Protocol: Fragments, Why: TooLong}
		}
	case Provisioned:
		if length <= s.Ready {
			return Choice{Protocol: Provisioned, Why: Forced, Slot: s.Ready}
		}
		size := s.class(length)
		switch {
		case size == 0:
			return s.rendezvous(BeyondLarge)
		case s.Refused != 0 && size >= s.Refused:
			return s.rendezvous(Refused)
		}
		return Choice{Protocol: Provisioned, Why: Forced, Slot: size}
	case Get, Put:
		c := s.rendezvous(Forced)
		if c.Protocol == Get {
			c.Protocol = s.Forced
		}
		return c
	}
	return Choice{Protocol: s.Forced, Why: Forced}
}
