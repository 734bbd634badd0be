package engine

import "xroce/roce"

// This file posts lists of work requests.

// PostSends is PostSend of each, in their order, with one lock and one doorbell (the list of
// ibv_post_send). It returns how many were posted; the error is that of the next one, and
// those from it on changed nothing.
func (q *QP) PostSends(list []roce.SendWR) (n int, err error) {
	if n, err = q.core.PostSends(list); n > 0 {
		q.home().ringDoorbell(q)
	}
	return n, err
}

// PostRecvs is PostRecv of each, in their order, with one lock (the list of ibv_post_recv). It
// returns how many were posted; the error is that of the next one, and those from it on
// changed nothing.
func (q *QP) PostRecvs(list []roce.RecvWR) (n int, err error) {
	if n, err = q.core.PostRecvs(list); n > 0 {
		q.rungByReceives()
	}
	return n, err
}
