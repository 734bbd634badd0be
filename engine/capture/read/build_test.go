package read

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"xroce/roce/dissect"
	"xroce/roce/roctest"
)

// captures are files of other programs.
const captures = "../../../roce/wire/testdata/captures"

// A sample is a packet that is written to files of all formats.
type sample struct {
	at   int64
	data []byte
}

// samples are the packets of a capture, a microsecond apart.
func samples(t testing.TB, name string) (list []sample) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(captures, name))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := roctest.Pcap(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range frames {
		list = append(list, sample{1_700_000_000_000_000_000 + int64(i)*1_001_000, f})
	}
	return list
}

// order is a byte order that can also append.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// pcapFile is a classic file.
func pcapFile(o order, unit int64, list []sample) []byte {
	if unit == 1 {
		return pcapFileOf(o, magicNano, list)
	}
	return pcapFileOf(o, magicMicro, list)
}

// pcapFileOf is a classic file of a magic number.
func pcapFileOf(o order, magic uint32, list []sample) []byte {
	unit := int64(1000)
	if magic == magicNano {
		unit = 1
	}
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(b, 65535)
	b = o.AppendUint32(b, uint32(dissect.LinkEthernet))
	for _, s := range list {
		b = o.AppendUint32(b, uint32(s.at/1e9))
		b = o.AppendUint32(b, uint32(s.at%1e9/unit))
		b = o.AppendUint32(b, uint32(len(s.data)))
		b = o.AppendUint32(b, uint32(len(s.data)))
		if magic == magicModified {
			b = o.AppendUint32(b, 2)      // interface
			b = o.AppendUint16(b, 0x0800) // IPv4
			b = append(b, 4, 0)           // sent by us
		}
		b = append(b, s.data...)
	}
	return b
}

// block is one of pcapng.
func block(o order, kind uint32, body []byte) []byte {
	total := uint32(blockFrameLen + (len(body)+3)&^3)
	b := o.AppendUint32(nil, kind)
	b = o.AppendUint32(b, total)
	b = append(b, body...)
	b = append(b, make([]byte, -len(body)&3)...)
	return o.AppendUint32(b, total)
}

// section is the header of one, with an interface whose time stamps count 10^-resol seconds.
func section(o order, resol byte) []byte {
	body := o.AppendUint32(nil, byteOrderMagic)
	body = o.AppendUint16(body, 1)
	body = append(body, make([]byte, 10)...)
	b := block(o, blockSection, body)
	body = o.AppendUint16(nil, uint16(dissect.LinkEthernet))
	body = append(body, make([]byte, 6)...)
	body = o.AppendUint16(body, optTsResol)
	body = o.AppendUint16(body, 1)
	body = append(body, resol, 0, 0, 0)
	body = o.AppendUint32(body, 0)
	return append(b, block(o, blockInterface, body)...)
}

// packetBlock is a packet with a comment, a direction and a count of drops.
func packetBlock(o order, stamp uint64, data []byte) []byte {
	body := o.AppendUint32(nil, 0)
	body = o.AppendUint32(body, uint32(stamp>>32))
	body = o.AppendUint32(body, uint32(stamp))
	body = o.AppendUint32(body, uint32(len(data)))
	body = o.AppendUint32(body, uint32(len(data)))
	body = append(body, data...)
	body = append(body, make([]byte, -len(data)&3)...)
	body = append(o.AppendUint16(o.AppendUint16(body, optComment), 5), "hello\x00\x00\x00"...)
	body = o.AppendUint32(o.AppendUint16(o.AppendUint16(body, optFlags), 4), 2)
	body = o.AppendUint64(o.AppendUint16(o.AppendUint16(body, optDropCount), 8), 7)
	return block(o, blockPacket, o.AppendUint32(body, 0))
}

// pcapngFile is a file of blocks, with one in it that nobody knows. A tick is nanoseconds.
func pcapngFile(o order, resol byte, tick int64, list []sample) []byte {
	b := section(o, resol)
	for _, s := range list {
		b = append(b, packetBlock(o, uint64(s.at/tick), s.data)...)
		b = append(b, block(o, 0x0bad, make([]byte, 40))...)
	}
	return b
}

// erfFile is a file of records of Ethernet.
func erfFile(list []sample) []byte {
	var b []byte
	for _, s := range list {
		stamp := uint64(s.at/1e9)<<32 | uint64(s.at%1e9)<<32/1e9
		b = binary.LittleEndian.AppendUint64(b, stamp+1) // rounded up, to be rounded down
		b = append(b, erfEthernet, 4)
		b = binary.BigEndian.AppendUint16(b, uint16(erfHeaderLen+2+len(s.data)))
		b = binary.BigEndian.AppendUint16(b, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(len(s.data)))
		b = append(append(b, 0, 0), s.data...)
	}
	return b
}

func gzipped(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstandard(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(b, nil)
}
