package msg

// FrameWriter builds a frame in place, in the memory from which it will be written to the slot of
// the peer. The zero value has no room.
type FrameWriter struct {
	slot    []byte
	used    uint64 // bytes behind the header
	records int
}

// Reset begins a frame in memory that is as long as the slot: no longer than an ADVERT may say.
func (w *FrameWriter) Reset(slot []byte) { *w = FrameWriter{slot: slot} }

// Records is how many records the frame has so far.
func (w *FrameWriter) Records() int { return w.records }

// Room is how many bytes of payload one more record could have; -1 when the frame can have none,
// not even one without payload.
func (w *FrameWriter) Room() int {
	if w.records == MaxRecords {
		return -1
	}
	end := uint64(len(w.slot)) &^ (frameAlign - 1)
	begin := FrameHeaderLen + w.used + RecordHeaderLen
	if end < begin {
		return -1
	}
	return int(end - begin)
}

// Payload is where the payload of the next record will go, all the room that there is, nil when
// the frame can have no more records. What is there stays when the record is added.
func (w *FrameWriter) Payload() []byte {
	room := w.Room()
	if room < 0 {
		return nil
	}
	begin := FrameHeaderLen + int(w.used) + RecordHeaderLen
	return w.slot[begin:][:room:room]
}

// Append adds a record to the frame and returns where its payload goes, h.Len bytes, which the
// caller fills before Finish. It returns false and changes nothing when there is no room.
func (w *FrameWriter) Append(h *RecordHeader) (payload []byte, ok bool) {
	room := w.Room()
	if room < 0 || uint64(h.Len) > uint64(room) {
		return nil, false
	}
	b := w.slot[FrameHeaderLen+w.used:][:recordLen(h.Len)]
	h.Put(b)
	end := RecordHeaderLen + int(h.Len)
	clear(b[end:])
	w.used += uint64(len(b))
	w.records++
	return b[RecordHeaderLen:end:end], true
}

// Finish writes the header before the records and returns the frame. Used and Records of h are set
// to what they are. A frame without records is none: the peer refuses it.
func (w *FrameWriter) Finish(h *FrameHeader) []byte {
	h.Used, h.Records = uint32(w.used), uint16(w.records)
	h.Put(w.slot)
	return w.slot[:FrameHeaderLen+w.used]
}
