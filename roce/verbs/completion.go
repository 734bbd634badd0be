package verbs

import (
	"xroce/roce/clock"
	"xroce/roce/wire"
)

// WCOpcode is what a completed work request was, with the values of enum
// ibv_wc_opcode.
type WCOpcode uint8

// The completion opcodes.
const (
	WCSend            WCOpcode = 0
	WCWrite           WCOpcode = 1
	WCRead            WCOpcode = 2
	WCCompSwap        WCOpcode = 3
	WCFetchAdd        WCOpcode = 4
	WCBindMW          WCOpcode = 5
	WCLocalInv        WCOpcode = 6
	WCFlush           WCOpcode = 8
	WCAtomicWrite     WCOpcode = 9
	WCRecv            WCOpcode = 128
	WCRecvRDMAWithImm WCOpcode = 129
	WCDriver1         WCOpcode = 135 // UMR
)

var wcNames = map[WCOpcode]string{
	WCSend: "SEND", WCWrite: "RDMA_WRITE", WCRead: "RDMA_READ", WCCompSwap: "COMP_SWAP",
	WCFetchAdd: "FETCH_ADD", WCBindMW: "BIND_MW", WCLocalInv: "LOCAL_INV", WCFlush: "FLUSH",
	WCAtomicWrite: "ATOMIC_WRITE", WCRecv: "RECV", WCRecvRDMAWithImm: "RECV_RDMA_WITH_IMM",
	WCDriver1: "DRIVER1",
}

// String returns the opcode as verbs spells it.
func (o WCOpcode) String() string {
	if name, ok := wcNames[o]; ok {
		return name
	}
	return "unknown"
}

// WCFlags tell what else a completion carries.
type WCFlags uint8

// The completion flags, with the values of enum ibv_wc_flags.
const (
	WCGRH     WCFlags = 1 << 0 // the receive begins with 40 bytes of addresses
	WCWithImm WCFlags = 1 << 1 // Imm is valid
	WCWithInv WCFlags = 1 << 3 // InvalidatedKey is valid
)

// VendorErr is what is known of a work request that failed beside its status (vendor_err of
// struct ibv_wc), 0 for nothing.
type VendorErr uint8

// VendorLargeLost, with StatusRetryExcErr, says that the peer answered a small packet while it did
// not acknowledge a large one: the path loses large packets alone. It is not known with a
// RETRY_CNT of 0.
const VendorLargeLost VendorErr = 1

// A Completion is a completion queue entry (CQE, struct ibv_wc). When Status is
// not success only WRID, Status, VendorErr, Opcode and QPN are valid; Err makes an error of them.
// Opcode is valid then unlike in verbs: that of a receive is WCRecv, whatever came.
type Completion struct {
	WRID   uint64
	Status Status
	Opcode WCOpcode
	Flags  WCFlags

	VendorErr VendorErr // of one that failed: what its status leaves open

	QPN     uint32
	ByteLen uint32 // RECV: bytes of the message, of a datagram with its 40; READ: bytes read
	Imm     uint32 // immediate data, read big-endian
	SrcQP   uint32 // RECV of a datagram: the QP that sent
	// RECV of QP 1: what the frame says (smac and vlan_id of the kernel's struct ib_wc). It is
	// who sent it on this link, the sender or the last router, and the VLAN, 0 for no tag.
	VLAN   wire.VLAN
	SrcMAC [6]byte
	// RECV of QP 1: the index of the P_Key that it was for (pkey_index of struct ib_wc).
	PKeyIndex uint16

	InvalidatedKey uint32     // the key that the peer took out of use
	Time           clock.Time // of the burst in which its last packet came, or was acknowledged
}
