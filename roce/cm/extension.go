package cm

import "xroce/roce/verbs"

// Extensions of queue pairs travel as options of a vendor (enhanced connection establishment;
// kernel include/rdma/ib_cm.h, struct ib_cm_ece): the REQ has those that its sender offers,
// the REP those that both ends use. Others ignore them, and the private data is all the
// application's.

// VendorID is the vendor of our options: "roc", which as a MAC address prefix is locally
// administered, so nobody owns it (IEEE 802c).
const VendorID = 0x726f63

// extensionsKnown are those that we know.
const extensionsKnown = verbs.ExtSelectiveRepeat | verbs.ExtReorderWindow |
	verbs.ExtPiggybackAck

// extensionsOf are the extensions that options name, none when they are another vendor's.
func extensionsOf(vendor, options uint32) verbs.Extensions {
	if vendor != VendorID {
		return 0
	}
	return verbs.Extensions(options) & extensionsKnown
}

// optionsOf names extensions, if there are any.
func optionsOf(e verbs.Extensions) (vendor, options uint32) {
	if e == 0 {
		return 0, 0
	}
	return VendorID, uint32(e)
}
