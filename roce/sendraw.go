package roce

// This file sends whole Ethernet frames.

// putRaw writes a whole Ethernet frame (a QP of type RAW_PACKET).
func (r *requester) putRaw(now Time, w *sendWQE, frame []byte) int {
	if w.length < minFrame || int(w.length) > len(frame) {
		r.failRequest(now, r.cur, StatusLocLenErr)
		return 0
	}
	if !r.putPayload(now, w, 0, frame[:w.length]) {
		return 0
	}
	r.sent(r.psn.Add(1), w)
	return int(w.length)
}
