// Package list has lists in the order of arrival, from which any member can leave in one step.
//
// A member embeds a Link for each list that it may be in at a time, and names itself when it
// joins:
//
//	type request struct {
//		waiting list.Link[request]
//	}
//
//	var q list.List[request]
//	q.Push(&r.waiting, r)
//	for r := q.Pop(); r != nil; r = q.Pop() { ... }
//
// A Link knows which List it is in. So it is in one at most, and nothing happens to a list by a
// member of another. Nothing allocates. It is the caller who keeps two goroutines from using a
// list, or the lists of one member, at once. A List must not be copied once it has been used.
package list
