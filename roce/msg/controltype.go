package msg

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Type says which control message it is.
type Type uint8

// The control messages.
const (
	TypeAdvert       Type = 1  // a ring of slots is there
	TypeAdvertAck    Type = 2  // it is used from now on: no frame of an older epoch comes
	TypeCredit       Type = 3  // slots were given back
	TypeRTS          Type = 4  // request to send: a message waits for a receive
	TypeRTR          Type = 5  // ready to receive: put it there
	TypeATS          Type = 6  // acknowledge to send: it is done, and how it ended
	TypeATP          Type = 7  // acknowledge to put: it was put there
	TypeCTS          Type = 8  // clear to send: as fragments, up to there
	TypeRTSCancel    Type = 9  // the message is not to be received; ATS answers
	TypeProvisionReq Type = 10 // provision a ring of large slots
	TypeProvisionAck Type = 11 // it is there
	TypeProvisionNak Type = 12 // it is not to be had
	TypeRelease      Type = 13 // a provisioned ring is not needed any more: no frame comes
	TypeReleaseAck   Type = 14 // it is gone
	TypeMatched      Type = 15 // a record with RecordSync was matched
	TypeFIN          Type = 16 // no message of the sender comes any more
	TypeBye          Type = 17 // the connection ends, and why
	TypeResume       Type = 18 // first on the rail that takes over: what came, by both counts

	typeEnd Type = 19
)

// Flags are flags of a control message.
type Flags uint8

// The flags.
const (
	FlagGet     Flags = 1 << 0 // of RTS: its memory may be read, with this key
	FlagActive  Flags = 1 << 1 // of RTS: for a handler
	FlagReplace Flags = 1 << 2 // of PROVISION_REQ: the small slots may go
	FlagPut     Flags = 1 << 3 // of RTS: it can be written to where the receiver wants it

	flagEnd = 1 << 4
)

var flagNames = []struct {
	flag Flags
	name string
}{{FlagGet, "GET"}, {FlagActive, "ACTIVE"}, {FlagReplace, "REPLACE"}, {FlagPut, "PUT"}}

// String returns the names of the flags that are set.
func (f Flags) String() string {
	var names []string
	for _, n := range flagNames {
		if f&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	if rest := f &^ (flagEnd - 1); rest != 0 || f == 0 {
		names = append(names, fmt.Sprintf("0x%02x", uint8(rest)))
	}
	return strings.Join(names, "+")
}

// Field is a field of a type of control message.
type Field struct {
	Name  string // what it is called in this type
	Place Place
	Min   uint64 // its least value: what is granted is never nothing
	Max   uint64 // its largest value, 0 for all that the place can have
	With  Flags  // it is there only when this flag is set, 0 for always
	Hex   bool   // it is printed in hexadecimal
}

// In reports whether a message with these flags has the field.
func (f *Field) In(flags Flags) bool { return flags&f.With == f.With }

// max is the largest value.
func (f *Field) max() uint64 {
	if f.Max != 0 {
		return f.Max
	}
	return placeMax[f.Place]
}

// spec is what there is to know of a type.
type spec struct {
	name      string
	fields    []Field // in the order in which they are printed
	flags     Flags   // that it may have
	statuses  statusSet
	rails     bool  // it may have entries of further rails
	railsWith Flags // if this flag is set
}

// Fields that several types have.
var (
	fieldID       = Field{Name: "id", Place: PlaceID}
	fieldEpoch    = Field{Name: "epoch", Place: PlaceID}
	fieldClass    = Field{Name: "class", Place: PlaceClass}
	fieldLarge    = Field{Name: "class", Place: PlaceClass, Min: 1}
	fieldStatus   = Field{Name: "status", Place: PlaceStatus}
	fieldSlots    = Field{Name: "slots", Place: PlaceNumber, Min: 1}
	fieldSize     = Field{Name: "size", Place: PlaceLen, Min: minSlot, Max: maxSlot}
	fieldLen      = Field{Name: "len", Place: PlaceLen}
	fieldGrant    = Field{Name: "len", Place: PlaceLen, Min: 1}
	fieldOffset   = Field{Name: "offset", Place: PlaceTag, Max: math.MaxInt64}
	fieldAddr     = Field{Name: "addr", Place: PlaceAddr, Hex: true}
	fieldRKey     = Field{Name: "rkey", Place: PlaceRKey, Hex: true}
	fieldReleased = Field{Name: "large", Place: PlaceTag, Max: math.MaxUint32}
)

// Limits of the length of a slot: one record with a byte, and what a frame can say.
const (
	minSlot = FrameHeaderLen + RecordHeaderLen + frameAlign
	maxSlot = FrameHeaderLen + math.MaxUint32&^(frameAlign-1)
)

// specs is the table of types. A field that is not listed is zero.
var specs = [typeEnd]spec{
	TypeAdvert: {name: "ADVERT", fields: []Field{
		fieldClass, fieldEpoch, fieldSlots, fieldSize, fieldAddr, fieldRKey,
	}, rails: true},
	TypeAdvertAck: {name: "ADVERT_ACK", fields: []Field{fieldClass, fieldEpoch}},
	TypeCredit:    {name: "CREDIT", fields: []Field{fieldReleased}},
	TypeRTS: {
		name: "RTS", fields: []Field{
			fieldID,
			{Name: "handler", Place: PlaceNumber, With: FlagActive},
			fieldLen,
			{Name: "addr", Place: PlaceAddr, With: FlagGet, Hex: true},
			{Name: "rkey", Place: PlaceRKey, With: FlagGet, Hex: true},
			{Name: "tag", Place: PlaceTag, Hex: true},
		},
		flags: FlagGet | FlagActive | FlagPut, rails: true, railsWith: FlagGet,
	},
	TypeRTR: {
		name: "RTR", fields: []Field{fieldID, fieldOffset, fieldGrant, fieldAddr, fieldRKey},
		rails: true,
	},
	TypeATS: {
		name: "ATS", fields: []Field{fieldID, fieldStatus, fieldLen},
		statuses: statuses(StatusOK, StatusTruncated, StatusCancelled, StatusNoMemory,
			StatusQuota, StatusTooLarge, StatusProtocolError, StatusTimeout, StatusClosed),
	},
	TypeATP: {name: "ATP", fields: []Field{fieldID, fieldOffset, fieldLen}},
	TypeCTS: {name: "CTS", fields: []Field{
		fieldID, {Name: "limit", Place: PlaceLen, Min: 1},
	}},
	TypeRTSCancel: {name: "RTS_CANCEL", fields: []Field{fieldID}},
	TypeProvisionReq: {
		name: "PROVISION_REQ", fields: []Field{
			fieldLarge, fieldEpoch, fieldSlots,
			{Name: "need", Place: PlaceLen, Min: minSlot, Max: maxSlot},
		},
		flags: FlagReplace,
	},
	TypeProvisionAck: {name: "PROVISION_ACK", fields: []Field{
		fieldLarge, fieldEpoch, fieldSlots, fieldSize, fieldAddr, fieldRKey,
	}, rails: true},
	TypeProvisionNak: {
		name: "PROVISION_NAK", fields: []Field{
			fieldEpoch, fieldStatus, {Name: "could", Place: PlaceLen, Max: maxSlot},
		},
		statuses: statuses(StatusNoMemory, StatusQuota, StatusTooLarge, StatusClosed, StatusBusy),
	},
	TypeRelease:    {name: "RELEASE", fields: []Field{fieldLarge, fieldEpoch}},
	TypeReleaseAck: {name: "RELEASE_ACK", fields: []Field{fieldLarge, fieldEpoch}},
	TypeMatched: {name: "MATCHED", fields: []Field{
		{Name: "frame", Place: PlaceID}, {Name: "record", Place: PlaceNumber},
	}},
	TypeFIN: {name: "FIN"},
	TypeBye: {
		name: "BYE", fields: []Field{fieldStatus},
		statuses: statuses(StatusOK, StatusNoMemory, StatusQuota, StatusProtocolError,
			StatusTimeout, StatusClosed, StatusBusy),
	},
	TypeResume: {name: "RESUME", fields: []Field{
		{Name: "switch", Place: PlaceNumber},
		{Name: "control", Place: PlaceID},
		{Name: "frame", Place: PlaceLen, Max: math.MaxUint32},
		fieldReleased,
	}},
}

// known reports whether there is such a type.
func (t Type) known() bool { return t > 0 && t < typeEnd }

// String returns the name of the type.
func (t Type) String() string {
	if t.known() {
		return specs[t].name
	}
	return fmt.Sprintf("control type %d", uint8(t))
}

// Fields returns the fields of the type in the order in which they are printed, none for a type
// that is not known. Sequence and released slots, which all have, are not among them.
func (t Type) Fields() []Field {
	if !t.known() {
		return nil
	}
	return slices.Clone(specs[t].fields)
}

// Statuses returns those that the type may have, none for a type without a status.
func (t Type) Statuses() []Status {
	var list []Status
	for s := range statusEnd {
		if t.known() && specs[t].statuses.has(s) {
			list = append(list, s)
		}
	}
	return list
}

// Flags returns all flags that the type may have.
func (t Type) Flags() Flags {
	if !t.known() {
		return 0
	}
	return specs[t].flags
}

// Rails reports whether a message of the type with these flags may have entries of further rails.
func (t Type) Rails(flags Flags) bool {
	return t.known() && specs[t].rails && flags&specs[t].railsWith == specs[t].railsWith
}
