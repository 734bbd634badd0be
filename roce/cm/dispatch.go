package cm

import "xroce/roce/clock"

// This file tells from its header which message a MAD is, and hands it over.

// HandleMAD takes a MAD that came to QP 1; from is the way that it came, so Remote
// is the sender. It is borrowed for the call. What is no message of a connection
// manager, or not one for this machine, is counted.
func (m *Machine) HandleMAD(now clock.Time, from Path, mad []byte) {
	h, err := ParseHeader(mad)
	if err != nil || len(mad) != MADLen || h.MgmtClass != MgmtClass ||
		h.BaseVersion != BaseVersion || h.Method != MethodSend || !h.Attribute.known() {
		m.count.Inc(DropNotCM)
		return
	}
	if from.Remote.IsZero() || from.Remote.IsMulticast() || from.Local.IsMulticast() {
		m.count.Inc(DropWrongSource)
		return
	}
	from.HopLimit = defaultHopLimit
	if h.ClassVersion != ClassVersion {
		m.refuseVersion(from, h, mad)
		return
	}
	m.count.Inc(rxMsgs(h.Attribute))
	switch h.Attribute {
	case AttributeREQ:
		m.handleREQ(now, from, h.TID, mad)
	case AttributeMRA:
		m.handleMRA(now, from, mad)
	case AttributeREJ:
		m.handleREJ(now, from, mad)
	case AttributeREP:
		m.handleREP(now, from, h.TID, mad)
	case AttributeRTU:
		m.handleRTU(from, mad)
	case AttributeDREQ:
		m.handleDREQ(now, from, h.TID, mad)
	case AttributeDREP:
		m.handleDREP(now, from, mad)
	case AttributeSIDRREQ:
		m.handleSIDRREQ(now, from, h.TID, mad)
	case AttributeSIDRREP:
		m.handleSIDRREP(from, mad)
	case AttributeLAP:
		m.handleLAP(from, h.TID, mad)
	case AttributeAPR:
		m.count.Inc(DropState) // we never ask
	}
}

// refuseVersion answers a request of another class version (IBA 12.6.7.2, 12.11.2).
// The first four bytes of its data are the sender's ID in all of them.
func (m *Machine) refuseVersion(from Path, h Header, mad []byte) {
	m.count.Inc(DropNotCM)
	switch h.Attribute {
	case AttributeREQ:
		m.send(&from, h.TID, &REJ{
			RemoteCommID: uint32FromData(mad), Reason: ReasonInvalidClassVersion,
		})
	case AttributeSIDRREQ:
		m.send(&from, h.TID, &SIDRREP{RequestID: uint32FromData(mad), Status: SIDRVersion})
	}
}
