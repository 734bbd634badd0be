package dialogue

import (
	"xroce/bench/softroce"
	"xroce/roce/cm"
)

// A token is what a value that a host draws or counts up is of.
type token int

// The tokens.
const (
	aCommID token = iota
	aRequestID
	aTransactionID
	aQPN
	aPSN
)

// gsiQPN is the QP of the connection manager. Numbers below 2 are fixed.
const gsiQPN = 1

// A told is a value of an end. Both ends may have the same.
type told struct {
	token token
	owner softroce.End
	value uint64
}

// A book knows what the messages of the connection manager told, so that values
// that differ in each run can be compared by where they come from.
type book struct {
	where  map[told]cm.Attribute // the message that told it first
	labels map[uint32]bool       // flow labels that follow from ports
	asked  map[told]uint32       // the QP number of a REQ, by its communication ID
	// conns is which connection a QP number or a communication ID is of, from 1 on.
	conns   map[told]int
	made    int          // connections
	hanging map[int]bool // those of them that were not ended
}

func newBook() book {
	return book{
		where: map[told]cm.Attribute{}, labels: map[uint32]bool{0: true},
		asked: map[told]uint32{}, conns: map[told]int{}, hanging: map[int]bool{},
	}
}

// What stands for the value of a token.
const (
	fresh   = "new"
	notTold = "not told"
)

// origin says which message told a value.
func (b *book) origin(t token, owner softroce.End, value uint64) string {
	if where, known := b.where[told{t, owner, value}]; known {
		return "that of the " + where.String()
	}
	if value == 0 || t == aQPN && value == gsiQPN {
		return string('0' + byte(value))
	}
	return notTold
}

// tell is origin for a message that may tell a value.
func (b *book) tell(t token, owner softroce.End, value uint64, by cm.Attribute) string {
	where := b.origin(t, owner, value)
	if where != notTold {
		return where
	}
	b.where[told{t, owner, value}] = by
	return fresh
}

// meet notes a connection that a REP makes, between the QP that it names and that
// of the REQ that it answers.
func (b *book) meet(from softroce.End, r *cm.REP) (conn int) {
	b.made++
	asker := other(from)
	qpn := b.asked[told{aCommID, asker, uint64(r.RemoteCommID)}]
	for _, key := range []told{
		{aCommID, from, uint64(r.LocalCommID)},
		{aCommID, asker, uint64(r.RemoteCommID)},
		{aQPN, from, uint64(r.LocalQPN)},
		{aQPN, asker, uint64(qpn)},
	} {
		b.conns[key] = b.made
	}
	return b.made
}

// connection is which connection a QP is of. A number that no message told is of the
// last one that was made; without the connection manager, QPs count as they are met.
func (b *book) connection(owner softroce.End, qpn uint32) int {
	key := told{aQPN, owner, uint64(qpn)}
	if b.conns[key] != 0 {
		return b.conns[key]
	}
	if b.made > 0 {
		return b.made
	}
	n := 1
	for k := range b.conns {
		if k.owner == owner {
			n++
		}
	}
	b.conns[key] = n
	return n
}
