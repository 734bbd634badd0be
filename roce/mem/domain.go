package mem

// A Domain is a protection domain (PD): keys of one domain are of no use to
// queue pairs of another. Domains are compared by identity.
type Domain struct {
	// A PD must not be a zero-size object: two of those may share an address,
	// and then they would be one domain.
	_ byte
}

// A Party is a queue pair as memory sees it: who alone may use a type 2 window.
// Parties are compared by identity, so a window whose queue pair was destroyed
// fits no queue pair, though the number of the queue pair may come again.
type Party struct{ _ byte }

// An Epoch counts the changes that keys have seen, from 1 on. The zero Epoch is
// "now". It has 64 bits because it must not wrap: a key may stay as it is for as long
// as the device lives.
type Epoch uint64

// An Accessor tells on whose behalf memory is accessed.
type Accessor struct {
	Domain *Domain
	// Party is the queue pair for what a peer asks, nil for what the owner of the
	// queue pair does: its work requests.
	Party *Party
	// Since is when the message began that the access is part of: a key that was
	// changed later gives FaultChanged, so that no message has one part from here
	// and another from there. The zero Epoch allows every key.
	Since Epoch
}

// Local is an access of the domain's owner that stands alone.
func (d *Domain) Local() Accessor { return Accessor{Domain: d} }
