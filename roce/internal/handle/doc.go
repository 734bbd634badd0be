// Package handle hands out the numbers by which a peer names our objects: QP
// numbers and the index part of memory keys.
//
// A peer who can guess a number can aim at an object that it was never told
// of, so numbers are drawn at random from the whole range, and one that was
// given back is not drawn again for a long time. Readers look numbers up
// without a lock while others insert and delete.
//
// A Table belongs to whoever made it and keeps pointers to the objects of others. Lookup
// takes no lock, but where what it looks for is not found while others are deleted; Insert and
// Delete hold the table's own, under which nobody is called but the source of random numbers, and
// who makes a value. The package imports nothing of ours.
package handle
