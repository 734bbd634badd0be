package verbs

import (
	"fmt"
	"strings"
)

// AttrMask names attributes of a QP, with the values of enum ibv_qp_attr_mask.
type AttrMask uint32

// The attributes. AttrAltPath and AttrPathMigState are refused, since RoCE has
// no automatic path migration, and AttrCap, since a QP keeps its size.
const (
	AttrState            AttrMask = 1 << 0
	AttrCurState         AttrMask = 1 << 1
	AttrEnSQDAsyncNotify AttrMask = 1 << 2
	AttrAccess           AttrMask = 1 << 3
	AttrPKeyIndex        AttrMask = 1 << 4
	AttrPort             AttrMask = 1 << 5
	AttrQKey             AttrMask = 1 << 6
	AttrAV               AttrMask = 1 << 7
	AttrPathMTU          AttrMask = 1 << 8
	AttrTimeout          AttrMask = 1 << 9
	AttrRetryCnt         AttrMask = 1 << 10
	AttrRNRRetry         AttrMask = 1 << 11
	AttrRQPSN            AttrMask = 1 << 12
	AttrMaxRdAtomic      AttrMask = 1 << 13
	AttrAltPath          AttrMask = 1 << 14
	AttrMinRNRTimer      AttrMask = 1 << 15
	AttrSQPSN            AttrMask = 1 << 16
	AttrMaxDestRdAtomic  AttrMask = 1 << 17
	AttrPathMigState     AttrMask = 1 << 18
	AttrCap              AttrMask = 1 << 19
	AttrDestQPN          AttrMask = 1 << 20
	AttrRateLimit        AttrMask = 1 << 25
	// AttrPathBytes is ours: see Attr.PathBytes.
	AttrPathBytes AttrMask = 1 << 26
	// AttrCongestion is ours: see Attr.Congestion.
	AttrCongestion AttrMask = 1 << 27
	// AttrKeepalive is ours: see Attr.Keepalive.
	AttrKeepalive AttrMask = 1 << 28
	// AttrFlowControl is ours: NoFlowControl, which connection management agrees on.
	AttrFlowControl AttrMask = 1 << 29
	// AttrExtensions is ours: see Extensions.
	AttrExtensions AttrMask = 1 << 30
)

var attrNames = map[AttrMask]string{
	AttrState: "STATE", AttrCurState: "CUR_STATE", AttrEnSQDAsyncNotify: "EN_SQD_ASYNC_NOTIFY",
	AttrAccess: "ACCESS_FLAGS", AttrPKeyIndex: "PKEY_INDEX", AttrPort: "PORT", AttrQKey: "QKEY",
	AttrAV: "AV", AttrPathMTU: "PATH_MTU", AttrTimeout: "TIMEOUT", AttrRetryCnt: "RETRY_CNT",
	AttrRNRRetry: "RNR_RETRY", AttrRQPSN: "RQ_PSN", AttrMaxRdAtomic: "MAX_QP_RD_ATOMIC",
	AttrAltPath: "ALT_PATH", AttrMinRNRTimer: "MIN_RNR_TIMER", AttrSQPSN: "SQ_PSN",
	AttrMaxDestRdAtomic: "MAX_DEST_RD_ATOMIC", AttrPathMigState: "PATH_MIG_STATE",
	AttrCap: "CAP", AttrDestQPN: "DEST_QPN", AttrRateLimit: "RATE_LIMIT",
	AttrCongestion: "CONGESTION", AttrKeepalive: "KEEPALIVE", AttrFlowControl: "FLOW_CONTROL",
	AttrExtensions: "EXTENSIONS", AttrPathBytes: "PATH_BYTES",
}

// String lists the attributes as verbs spells them, without the prefix.
func (m AttrMask) String() string {
	var names []string
	for bit := AttrMask(1); bit != 0; bit <<= 1 {
		if m&bit == 0 {
			continue
		}
		if name, ok := attrNames[bit]; ok {
			names = append(names, name)
		} else {
			names = append(names, fmt.Sprintf("%#x", uint32(bit)))
		}
	}
	return strings.Join(names, " ")
}
