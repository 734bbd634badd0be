package wire

// FrameSource reads where a frame says that it comes from: the source GID, as of
// Packet.Src, and the VLAN. Of the frame it reads as much as that takes; ok is false when it is
// too short or no RoCE frame by its EtherType.
func FrameSource(frame []byte) (src GID, vlan VLAN, ok bool) {
	tags, etherType, net, ok := ParseTags(frame)
	if !ok {
		return GID{}, 0, false
	}
	h := frame[net:]
	switch etherType {
	case etherTypeIPv4:
		if len(h) < ipv4Len {
			return GID{}, 0, false
		}
		src.setIPv4((*[4]byte)(h[12:]))
	case etherTypeIPv6, EtherTypeV1: // both have the layout of a GRH
		if len(h) < GRHLen {
			return GID{}, 0, false
		}
		src = GID(h[grhOffSGID:])
	default:
		return GID{}, 0, false
	}
	return src, tags.VLAN(), true
}
