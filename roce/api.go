package roce

import (
	"xroce/roce/clock"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/recovery"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// This file makes the vocabulary of verbs, and the queues, part of the package, so
// that who uses queue pairs needs one import. What the names mean is said where they
// are declared.

// Time is a point of monotonic time.
type Time = clock.Time

// Durations in units of Time.
const (
	Nanosecond  = clock.Nanosecond
	Microsecond = clock.Microsecond
	Millisecond = clock.Millisecond
	Second      = clock.Second
)

// A queue pair and its attributes.
type (
	QPType     = verbs.QPType
	State      = verbs.State
	Attr       = verbs.Attr
	AttrMask   = verbs.AttrMask
	Extensions = verbs.Extensions
	PKeyTable  = verbs.PKeyTable
)

// DefaultPKeys is the table of a RoCE port that was told nothing: the default partition.
func DefaultPKeys() PKeyTable { return verbs.DefaultPKeys() }

// The bit of a P_Key that says full member.
const PKeyFull = verbs.PKeyFull

// What is posted to a queue pair.
type (
	Opcode    = verbs.Opcode
	SendFlags = verbs.SendFlags
	SendWR    = verbs.SendWR
	RecvWR    = verbs.RecvWR
	SGE       = verbs.SGE
	AH        = verbs.AH
)

// What a queue pair tells.
type (
	Completion = verbs.Completion
	WorkError  = verbs.WorkError
	Status     = verbs.Status
	VendorErr  = verbs.VendorErr
	WCOpcode   = verbs.WCOpcode
	WCFlags    = verbs.WCFlags
	Event      = verbs.Event
)

// The queues.
type (
	CQ          = queue.CQ
	SRQ         = queue.SRQ
	SRQConfig   = queue.SRQConfig
	SRQAttr     = queue.SRQAttr
	SRQAttrMask = queue.SRQAttrMask
	XRCD        = queue.XRCD
)

// What queue pairs with extensions share.
type EarlyPool = recovery.Pool

// NewEarlyPool returns a pool of packets of up to size bytes; see recovery.NewPool.
func NewEarlyPool(packets, size int) *EarlyPool { return recovery.NewPool(packets, size) }

// The errors, which come wrapped with the argument and what was expected of it.
var (
	ErrInvalid   = verbs.ErrInvalid
	ErrState     = verbs.ErrState
	ErrQueueFull = verbs.ErrQueueFull
	ErrOverrun   = verbs.ErrOverrun
	ErrFailed    = verbs.ErrFailed
	ErrLargeLost = verbs.ErrLargeLost
)

// The types of a QP.
const (
	TypeGSI       = verbs.TypeGSI
	TypeRC        = verbs.TypeRC
	TypeUC        = verbs.TypeUC
	TypeUD        = verbs.TypeUD
	TypeRawPacket = verbs.TypeRawPacket
	TypeXRCSend   = verbs.TypeXRCSend
	TypeXRCRecv   = verbs.TypeXRCRecv
)

// The states of a QP.
const (
	StateReset = verbs.StateReset
	StateInit  = verbs.StateInit
	StateRTR   = verbs.StateRTR
	StateRTS   = verbs.StateRTS
	StateSQD   = verbs.StateSQD
	StateSQE   = verbs.StateSQE
	StateErr   = verbs.StateErr
)

// The attributes of a QP.
const (
	AttrState            = verbs.AttrState
	AttrCurState         = verbs.AttrCurState
	AttrEnSQDAsyncNotify = verbs.AttrEnSQDAsyncNotify
	AttrAccess           = verbs.AttrAccess
	AttrPKeyIndex        = verbs.AttrPKeyIndex
	AttrPort             = verbs.AttrPort
	AttrQKey             = verbs.AttrQKey
	AttrAV               = verbs.AttrAV
	AttrPathMTU          = verbs.AttrPathMTU
	AttrPathBytes        = verbs.AttrPathBytes
	AttrTimeout          = verbs.AttrTimeout
	AttrRetryCnt         = verbs.AttrRetryCnt
	AttrRNRRetry         = verbs.AttrRNRRetry
	AttrRQPSN            = verbs.AttrRQPSN
	AttrMaxRdAtomic      = verbs.AttrMaxRdAtomic
	AttrAltPath          = verbs.AttrAltPath
	AttrMinRNRTimer      = verbs.AttrMinRNRTimer
	AttrSQPSN            = verbs.AttrSQPSN
	AttrMaxDestRdAtomic  = verbs.AttrMaxDestRdAtomic
	AttrPathMigState     = verbs.AttrPathMigState
	AttrCap              = verbs.AttrCap
	AttrDestQPN          = verbs.AttrDestQPN
	AttrRateLimit        = verbs.AttrRateLimit
	AttrFlowControl      = verbs.AttrFlowControl
	AttrCongestion       = verbs.AttrCongestion
	AttrKeepalive        = verbs.AttrKeepalive
	AttrExtensions       = verbs.AttrExtensions
)

// The operations of a send queue.
const (
	OpWrite       = verbs.OpWrite
	OpWriteImm    = verbs.OpWriteImm
	OpSend        = verbs.OpSend
	OpSendImm     = verbs.OpSendImm
	OpRead        = verbs.OpRead
	OpCmpSwap     = verbs.OpCmpSwap
	OpFetchAdd    = verbs.OpFetchAdd
	OpLocalInv    = verbs.OpLocalInv
	OpBindMW      = verbs.OpBindMW
	OpSendInv     = verbs.OpSendInv
	OpUMR         = verbs.OpUMR
	OpFlush       = verbs.OpFlush
	OpAtomicWrite = verbs.OpAtomicWrite
	OpRegMR       = verbs.OpRegMR
)

// The send flags.
const (
	SendFence     = verbs.SendFence
	SendSignaled  = verbs.SendSignaled
	SendSolicited = verbs.SendSolicited
	SendInline    = verbs.SendInline
)

// The statuses.
const (
	StatusSuccess      = verbs.StatusSuccess
	StatusLocLenErr    = verbs.StatusLocLenErr
	StatusLocQPOpErr   = verbs.StatusLocQPOpErr
	StatusLocProtErr   = verbs.StatusLocProtErr
	StatusWRFlushErr   = verbs.StatusWRFlushErr
	StatusMWBindErr    = verbs.StatusMWBindErr
	StatusBadRespErr   = verbs.StatusBadRespErr
	StatusLocAccessErr = verbs.StatusLocAccessErr
	StatusRemInvReqErr = verbs.StatusRemInvReqErr
	StatusRemAccessErr = verbs.StatusRemAccessErr
	StatusRemOpErr     = verbs.StatusRemOpErr
	StatusRetryExcErr  = verbs.StatusRetryExcErr
	StatusRNRRetryExc  = verbs.StatusRNRRetryExc
	StatusGeneralErr   = verbs.StatusGeneralErr
)

// VendorLargeLost says that the path loses large packets alone.
const VendorLargeLost = verbs.VendorLargeLost

// The completion opcodes and flags.
const (
	WCSend            = verbs.WCSend
	WCWrite           = verbs.WCWrite
	WCRead            = verbs.WCRead
	WCCompSwap        = verbs.WCCompSwap
	WCFetchAdd        = verbs.WCFetchAdd
	WCBindMW          = verbs.WCBindMW
	WCLocalInv        = verbs.WCLocalInv
	WCFlush           = verbs.WCFlush
	WCAtomicWrite     = verbs.WCAtomicWrite
	WCRecv            = verbs.WCRecv
	WCRecvRDMAWithImm = verbs.WCRecvRDMAWithImm
	WCDriver1         = verbs.WCDriver1
	WCGRH             = verbs.WCGRH
	WCWithImm         = verbs.WCWithImm
	WCWithInv         = verbs.WCWithInv
)

// The events.
const (
	EventCQErr            = verbs.EventCQErr
	EventQPFatal          = verbs.EventQPFatal
	EventQPReqErr         = verbs.EventQPReqErr
	EventQPAccessErr      = verbs.EventQPAccessErr
	EventCommEst          = verbs.EventCommEst
	EventSQDrained        = verbs.EventSQDrained
	EventDeviceFatal      = verbs.EventDeviceFatal
	EventPortActive       = verbs.EventPortActive
	EventPortErr          = verbs.EventPortErr
	EventSRQErr           = verbs.EventSRQErr
	EventSRQLimitReached  = verbs.EventSRQLimitReached
	EventQPLastWQEReached = verbs.EventQPLastWQEReached
	EventGIDChange        = verbs.EventGIDChange
	EventQueueMissed      = verbs.EventQueueMissed
)

// The extensions.
const (
	ExtSelectiveRepeat = verbs.ExtSelectiveRepeat
	ExtReorderWindow   = verbs.ExtReorderWindow
	ExtPiggybackAck    = verbs.ExtPiggybackAck
)

// The attributes of an SRQ.
const (
	SRQAttrMaxWR = queue.SRQAttrMaxWR
	SRQAttrLimit = queue.SRQAttrLimit
)

// Limits of the queues.
const (
	MaxWR         = queue.MaxWR
	MaxSGE        = queue.MaxSGE
	MaxInline     = queue.MaxInline
	MaxCQDepth    = queue.MaxCQDepth
	MaxInlineRecv = queue.MaxInlineRecv
)

// Limits, and the Q_Key of every GSI QP.
const (
	MaxMessage  = verbs.MaxMessage
	MaxRdAtomic = verbs.MaxRdAtomic
	GSIQKey     = verbs.GSIQKey
)

// NewAH makes an address handle of a resolved path; see verbs.NewAH.
func NewAH(d *mem.Domain, path wire.Path) (*AH, error) { return verbs.NewAH(d, path) }

// NewCQ returns a CQ with room for at least depth completions; see queue.NewCQ.
func NewCQ(depth int, onEvent func()) (*CQ, error) { return queue.NewCQ(depth, onEvent) }

// NewSRQ returns an empty SRQ with this number (24 bits); see queue.NewSRQ.
func NewSRQ(num uint32, c SRQConfig) (*SRQ, error) { return queue.NewSRQ(num, c) }

// NewXRCD returns an empty XRC domain.
func NewXRCD() *XRCD { return queue.NewXRCD() }
