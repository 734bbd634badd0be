package cm

import "fmt"

// Reason says why a REJ was sent (IBA 12.6.7.2).
type Reason uint16

// The reasons.
const (
	ReasonNone                Reason = 0 // of what is no REJ
	ReasonNoQP                Reason = 1
	ReasonNoEEC               Reason = 2
	ReasonNoResources         Reason = 3
	ReasonTimeout             Reason = 4
	ReasonUnsupported         Reason = 5
	ReasonInvalidCommID       Reason = 6
	ReasonInvalidCommInstance Reason = 7
	ReasonInvalidServiceID    Reason = 8 // no listener
	ReasonInvalidTransport    Reason = 9
	ReasonStaleConn           Reason = 10
	ReasonNoRDC               Reason = 11
	ReasonInvalidGID          Reason = 12 // Info has one to try instead
	ReasonInvalidLID          Reason = 13
	ReasonInvalidSL           Reason = 14
	ReasonInvalidTrafficClass Reason = 15
	ReasonInvalidHopLimit     Reason = 16
	ReasonInvalidPacketRate   Reason = 17
	ReasonInvalidAltGID       Reason = 18
	ReasonInvalidAltLID       Reason = 19
	ReasonInvalidAltSL        Reason = 20
	ReasonInvalidAltTClass    Reason = 21
	ReasonInvalidAltHopLimit  Reason = 22
	ReasonInvalidAltRate      Reason = 23
	ReasonPortCMRedirect      Reason = 24
	ReasonPortRedirect        Reason = 25
	ReasonInvalidMTU          Reason = 26 // Info has the largest
	ReasonInsufficientResp    Reason = 27
	ReasonConsumer            Reason = 28 // the application said no
	ReasonRNRRetry            Reason = 29
	ReasonDuplicateCommID     Reason = 30
	ReasonInvalidClassVersion Reason = 31
	ReasonInvalidFlowLabel    Reason = 32
	ReasonInvalidAltFlowLabel Reason = 33
	ReasonVendorOption        Reason = 35

	reasonEnd = 36
)

var reasonNames = [reasonEnd]string{
	ReasonNone:                "none",
	ReasonNoQP:                "no QP available",
	ReasonNoEEC:               "no EE context available",
	ReasonNoResources:         "no resources available",
	ReasonTimeout:             "timeout",
	ReasonUnsupported:         "unsupported request",
	ReasonInvalidCommID:       "invalid communication ID",
	ReasonInvalidCommInstance: "invalid communication instance",
	ReasonInvalidServiceID:    "invalid service ID",
	ReasonInvalidTransport:    "invalid transport service type",
	ReasonStaleConn:           "stale connection",
	ReasonNoRDC:               "RDC does not exist",
	ReasonInvalidGID:          "primary remote port GID rejected",
	ReasonInvalidLID:          "primary remote port LID rejected",
	ReasonInvalidSL:           "invalid primary SL",
	ReasonInvalidTrafficClass: "invalid primary traffic class",
	ReasonInvalidHopLimit:     "invalid primary hop limit",
	ReasonInvalidPacketRate:   "invalid primary packet rate",
	ReasonInvalidAltGID:       "alternate remote port GID rejected",
	ReasonInvalidAltLID:       "alternate remote port LID rejected",
	ReasonInvalidAltSL:        "invalid alternate SL",
	ReasonInvalidAltTClass:    "invalid alternate traffic class",
	ReasonInvalidAltHopLimit:  "invalid alternate hop limit",
	ReasonInvalidAltRate:      "invalid alternate packet rate",
	ReasonPortCMRedirect:      "port and CM redirection",
	ReasonPortRedirect:        "port redirection",
	ReasonInvalidMTU:          "invalid path MTU",
	ReasonInsufficientResp:    "insufficient responder resources",
	ReasonConsumer:            "consumer reject",
	ReasonRNRRetry:            "RNR retry count reject",
	ReasonDuplicateCommID:     "duplicate local communication ID",
	ReasonInvalidClassVersion: "invalid class version",
	ReasonInvalidFlowLabel:    "invalid primary flow label",
	ReasonInvalidAltFlowLabel: "invalid alternate flow label",
	ReasonVendorOption:        "vendor option not supported",
}

// String returns the reason in the words of the architecture.
func (r Reason) String() string {
	if r < reasonEnd && reasonNames[r] != "" {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint16(r))
}
