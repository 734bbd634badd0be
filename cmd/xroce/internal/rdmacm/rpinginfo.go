package rdmacm

import "encoding/binary"

// infoLen is the length of an info in bytes.
const infoLen = 16

// An info says where memory of its sender is: struct rping_rdma_info, big-endian.
//
//	 0                   8           12          16
//	+-------------------+-----------+-----------+
//	|        buf        |   rkey    |   size    |
//	+-------------------+-----------+-----------+
//
// The server answers with one whose content says nothing.
type info struct {
	buf  uint64 // address of the first byte
	rkey uint32
	size uint32 // bytes
}

// parseInfo reads an info from infoLen bytes.
func parseInfo(b []byte) info {
	_ = b[infoLen-1]
	return info{
		buf:  binary.BigEndian.Uint64(b),
		rkey: binary.BigEndian.Uint32(b[8:]),
		size: binary.BigEndian.Uint32(b[12:]),
	}
}

// put writes an info to infoLen bytes.
func (i info) put(b []byte) {
	_ = b[infoLen-1]
	binary.BigEndian.PutUint64(b, i.buf)
	binary.BigEndian.PutUint32(b[8:], i.rkey)
	binary.BigEndian.PutUint32(b[12:], i.size)
}
