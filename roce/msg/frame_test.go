package msg_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/msg"
)

// goldenFrame has a record of each type, with and without padding.
const goldenFrame = "00000007 00000102 00000050 0004 0000 00000203 00000304" +
	"01 01 0000 00000003 0000000000000005 616263 0000000000" +
	"03 00 0009 00000000 1122334455667788" +
	"02 00 1234 00000008 0000000000100000 3132333435363738" +
	"01 00 0000 00000000 ffffffffffffffff"

var goldenHeader = msg.FrameHeader{
	Epoch: 7, Sequence: 0x102, Used: 80, Records: 4, ReleasedSmall: 0x203, ReleasedLarge: 0x304,
}

const goldenHeaderText = "FRAME epoch=7 seq=258 used=80 records=4 released=515 large=772"

// A record is a record with a copy of its payload, as the model keeps it.
type record struct {
	header  msg.RecordHeader
	payload string
}

var goldenRecords = []record{
	{msg.RecordHeader{Type: msg.RecordEager, Flags: msg.RecordSync, Len: 3, Tag: 5}, "abc"},
	{msg.RecordHeader{Type: msg.RecordActive, Number: 9, Tag: 0x1122334455667788}, ""},
	{
		msg.RecordHeader{Type: msg.RecordFragment, Number: 0x1234, Len: 8, Tag: 1 << 20},
		"12345678",
	},
	{msg.RecordHeader{Type: msg.RecordEager, Tag: math.MaxUint64}, ""},
}

// read takes a frame apart. It fails the test when anything lies outside of it.
func read(tb testing.TB, slot []byte) (msg.FrameHeader, []record, error) {
	tb.Helper()
	f, err := msg.ParseFrame(slot)
	if err != nil {
		return msg.FrameHeader{}, nil, err
	}
	var list []record
	it := f.Iterate()
	at := msg.FrameHeaderLen
	var r msg.Record
	for it.Next(&r) {
		at += msg.RecordHeaderLen
		n := len(r.Payload)
		if n != int(r.Len) || cap(r.Payload) != n {
			tb.Fatalf("%v has %d bytes of payload, capacity %d", &r.RecordHeader, n, cap(r.Payload))
		}
		if n > 0 && &r.Payload[0] != &slot[at] {
			tb.Fatalf("payload of %v is not at %d", &r.RecordHeader, at)
		}
		at += (n + 7) / 8 * 8
		if at > msg.FrameHeaderLen+int(f.Used) {
			tb.Fatalf("%v goes beyond what is used", &r.RecordHeader)
		}
		list = append(list, record{r.RecordHeader, string(r.Payload)})
	}
	if err := it.Err(); err != nil {
		if it.Next(&r) {
			tb.Fatal("there is a record behind the wrong one")
		}
		return f.FrameHeader, list, err
	}
	if len(list) != int(f.Records) || at != msg.FrameHeaderLen+int(f.Used) {
		tb.Fatalf("%d records end at %d: %v", len(list), at, &f.FrameHeader)
	}
	return f.FrameHeader, list, nil
}

// write builds a frame of records.
func write(tb testing.TB, slot []byte, h msg.FrameHeader, list []record) []byte {
	tb.Helper()
	var w msg.FrameWriter
	w.Reset(slot)
	for _, r := range list {
		payload, ok := w.Append(&r.header)
		if !ok || len(payload) != len(r.payload) || cap(payload) != len(payload) {
			tb.Fatalf("no room for %v", &r.header)
		}
		copy(payload, r.payload)
	}
	return w.Finish(&h)
}

func equalRecords(a, b []record) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestFrameGolden(t *testing.T) {
	want := unhex(t, goldenFrame)
	slot := bytes.Repeat([]byte{0xa5}, 200)
	if got := write(t, slot, goldenHeader, goldenRecords); !bytes.Equal(got, want) {
		t.Errorf("frame is\n%x, want\n%x", got, want)
	}
	if !bytes.Equal(slot[len(want):], bytes.Repeat([]byte{0xa5}, 200-len(want))) {
		t.Error("the writer wrote behind the frame")
	}
	h, list, err := read(t, slot)
	if err != nil || h != goldenHeader || !equalRecords(list, goldenRecords) {
		t.Errorf("read %v, %v, %v", &h, list, err)
	}
	if got := h.String(); got != goldenHeaderText {
		t.Errorf("header prints as\n%s, want\n%s", got, goldenHeaderText)
	}
}

// TestFrameTruncated: of a frame of which less was written nothing is read.
func TestFrameTruncated(t *testing.T) {
	b := unhex(t, goldenFrame)
	for n := range b {
		want := msg.ErrLength
		if n < msg.FrameHeaderLen {
			want = msg.ErrShort
		}
		for _, slot := range [][]byte{b[:n:n], b[:n]} { // and in a ring, where more is behind
			if _, err := msg.ParseFrame(slot); !errors.Is(err, want) {
				t.Errorf("of %d bytes: %v", n, err)
			}
		}
	}
}

// TestFrameHeaderBits changes each bit of the header.
func TestFrameHeaderBits(t *testing.T) {
	for i := range msg.FrameHeaderLen * 8 {
		b := append(unhex(t, goldenFrame), make([]byte, 1<<10)...)
		b[i/8] ^= 0x80 >> (i % 8)
		h, list, err := read(t, b)
		switch i / 8 {
		case 8, 9, 10, 11, 12, 13: // more or less is used, other records
			if err == nil {
				t.Errorf("bit %d: no error, %v", i, &h)
			}
		case 14, 15:
			if !errors.Is(err, msg.ErrReserved) {
				t.Errorf("bit %d: %v", i, err)
			}
		default:
			if err != nil || h == goldenHeader || !equalRecords(list, goldenRecords) {
				t.Errorf("bit %d: %v, %v", i, &h, err)
			}
		}
	}
}

// TestFrameRefuses: what a header may not say, and what its records may not, each by name.
func TestFrameRefuses(t *testing.T) {
	const used, records, first, pad = 8, 12, 24, 43
	for _, c := range []struct {
		name  string
		at    int
		bytes string
		err   error
		read  int // records before the error
	}{
		{"more used than there is", used, "00000058", msg.ErrLength, 0},
		{"as much used as can be said", used, "fffffff8", msg.ErrLength, 0},
		{"half a multiple of 8 used", used, "0000004c", msg.ErrLength, 0},
		{"no records", records, "0000", msg.ErrRecords, 0},
		{"nothing used, no records", used, "00000000 0000", msg.ErrRecords, 0},
		{"more records than fit", records, "0006", msg.ErrRecords, 0},
		{"one record more", records, "0005", msg.ErrRecords, 3},
		{"one record less", records, "0003", msg.ErrRecords, 2},
		{"one record", records, "0001", msg.ErrRecords, 0},
		{"the last record not used", used, "00000040", msg.ErrRecords, 2},
		{"half of the last header not used", used, "00000048", msg.ErrShort, 3},
		{"type 0", first, "00", msg.ErrType, 0},
		{"type 4", first, "04", msg.ErrType, 0},
		{"flag", first + 1, "04", msg.ErrFlags, 0},
		{"number", first + 2, "0001", msg.ErrReserved, 0},
		{"longer than the frame", first + 4, "00000041", msg.ErrLength, 0},
		{"4 GiB long", first + 4, "ffffffff", msg.ErrLength, 0},
		{"all of the frame", first + 4, "00000040", msg.ErrRecords, 0},
		{"first byte of padding", pad, "01", msg.ErrReserved, 0},
		{"last byte of padding", pad + 4, "80", msg.ErrReserved, 0},
		{"flag of a fragment", first + 41, "01", msg.ErrFlags, 2},
		{"offset of a fragment", first + 48, "8000000000000000", msg.ErrRange, 2},
	} {
		b := unhex(t, goldenFrame)
		copy(b[c.at:], unhex(t, c.bytes))
		_, list, err := read(t, b)
		if !errors.Is(err, c.err) || !equalRecords(list, goldenRecords[:c.read]) {
			t.Errorf("%s: %v behind %d records, want %v behind %d",
				c.name, err, len(list), c.err, c.read)
		}
	}
}

// TestFrameChangedWhileRead: the peer may write to the slot at any time. What was not read yet
// becomes an error or another record of the same frame, and never more than the frame.
func TestFrameChangedWhileRead(t *testing.T) {
	slot := append(unhex(t, goldenFrame), unhex(t, goldenFrame)...)
	slot = slot[:len(slot)/2]
	f, err := msg.ParseFrame(slot)
	must(t, err)
	it := f.Iterate()
	var r msg.Record
	if !it.Next(&r) {
		t.Fatal(it.Err())
	}
	binary.BigEndian.PutUint32(slot[8:], math.MaxUint32&^7)
	binary.BigEndian.PutUint16(slot[12:], math.MaxUint16)
	for i := 28; i+4 <= len(slot); i += 8 {
		binary.BigEndian.PutUint32(slot[i:], 80)
	}
	if it.Next(&r) || !errors.Is(it.Err(), msg.ErrLength) {
		t.Errorf("%v, %v", &r.RecordHeader, it.Err())
	}
}

// TestSlotLen: a slot of SlotLen takes the payload that it is for, one of 8 bytes less does not.
func TestSlotLen(t *testing.T) {
	for payload, want := range map[uint32]uint64{
		0: 40, 1: 48, 8: 48, 9: 56, 1024: 1064, math.MaxUint32: 1<<32 + 40,
	} {
		if got := msg.SlotLen(payload); got != want {
			t.Errorf("slot for %d bytes is %d long, want %d", payload, got, want)
		}
		if want > 1<<20 {
			continue
		}
		var w msg.FrameWriter
		w.Reset(make([]byte, want))
		if got := w.Room(); got != int(payload+7)&^7 {
			t.Errorf("%d bytes long: room for %d", want, got)
		}
		w.Reset(make([]byte, want-8))
		if got := w.Room(); got >= int(payload) {
			t.Errorf("%d bytes long: room for %d", want-8, got)
		}
	}
}

// TestWriterRoom: Room is exact whatever the length of the slot.
func TestWriterRoom(t *testing.T) {
	for n := range 120 {
		var w msg.FrameWriter
		w.Reset(make([]byte, n))
		room := w.Room()
		want := (n - msg.FrameHeaderLen - msg.RecordHeaderLen) &^ 7
		if n < msg.FrameHeaderLen+msg.RecordHeaderLen {
			want = -1
		}
		if room != want {
			t.Errorf("slot of %d bytes: room for %d, want %d", n, room, want)
		}
		over := msg.RecordHeader{Type: msg.RecordEager, Len: uint32(room + 1)}
		if _, ok := w.Append(&over); ok || w.Records() != 0 {
			t.Errorf("slot of %d bytes takes more than %d", n, room)
		}
		if room < 0 {
			continue
		}
		full := msg.RecordHeader{Type: msg.RecordEager, Len: uint32(room)}
		if _, ok := w.Append(&full); !ok || w.Records() != 1 || w.Room() != -1 {
			t.Errorf("slot of %d bytes does not take %d", n, room)
		}
		_, _, err := read(t, w.Finish(&msg.FrameHeader{}))
		must(t, err)
	}
	if n := new(msg.FrameWriter).Room(); n != -1 {
		t.Errorf("no slot has room for %d", n)
	}
}

// TestWriterCountsRecords: a frame has at most as many records as its header can say.
func TestWriterCountsRecords(t *testing.T) {
	var w msg.FrameWriter
	w.Reset(make([]byte, msg.FrameHeaderLen+(msg.MaxRecords+1)*msg.RecordHeaderLen))
	h := msg.RecordHeader{Type: msg.RecordEager}
	for range msg.MaxRecords {
		if _, ok := w.Append(&h); !ok {
			t.Fatalf("no room behind %d records", w.Records())
		}
	}
	if _, ok := w.Append(&h); ok || w.Room() != -1 {
		t.Error("room for more records than a header can say")
	}
	_, list, err := read(t, w.Finish(&msg.FrameHeader{}))
	if err != nil || len(list) != msg.MaxRecords {
		t.Errorf("%d records, %v", len(list), err)
	}
}

func drawRecord(t *rapid.T, room int) record {
	payload := rapid.SliceOfN(rapid.Byte(), 0, room).Draw(t, "payload")
	r := record{msg.RecordHeader{
		Type: rapid.SampledFrom([]msg.RecordType{
			msg.RecordEager, msg.RecordFragment, msg.RecordActive,
		}).Draw(t, "type"), Len: uint32(len(payload)),
	}, string(payload)}
	if r.header.Type != msg.RecordEager {
		r.header.Number = rapid.Uint16().Draw(t, "number")
	}
	if r.header.Type == msg.RecordFragment {
		r.header.Tag = rapid.Uint64Max(math.MaxInt64).Draw(t, "offset")
	} else {
		r.header.Tag = rapid.Uint64().Draw(t, "tag")
		r.header.Flags = msg.RecordFlags(rapid.Uint8Max(1).Draw(t, "flags"))
	}
	return r
}

// TestFrameRoundTrip: what was appended to any slot as long as there was room is read again.
func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot := bytes.Repeat([]byte{0xa5}, rapid.IntRange(40, 400).Draw(t, "slot"))
		h := msg.FrameHeader{
			Epoch: rapid.Uint32().Draw(t, "epoch"), Sequence: rapid.Uint32().Draw(t, "sequence"),
			ReleasedSmall: rapid.Uint32().Draw(t, "small"),
			ReleasedLarge: rapid.Uint32().Draw(t, "large"),
		}
		var w msg.FrameWriter
		w.Reset(slot)
		var want []record
		for n := rapid.IntRange(1, 30).Draw(t, "records"); n > 0 && w.Room() >= 0; n-- {
			r := drawRecord(t, w.Room())
			payload, ok := w.Append(&r.header)
			if !ok {
				t.Fatalf("no room for %v", &r.header)
			}
			copy(payload, r.payload)
			want = append(want, r)
		}
		frame := w.Finish(&h)
		f, err := msg.ParseFrame(frame)
		if err != nil || f.FrameHeader != h || len(frame) != msg.FrameHeaderLen+int(h.Used) {
			t.Fatalf("header %v becomes %v, %v", &h, &f.FrameHeader, err)
		}
		it := f.Iterate()
		for i, r := 0, (msg.Record{}); it.Next(&r); i++ {
			if got := (record{r.RecordHeader, string(r.Payload)}); got != want[i] {
				t.Fatalf("record %d is %v, want %v", i, got, want[i])
			}
		}
		if int(h.Records) != len(want) || it.Err() != nil {
			t.Fatalf("%d of %d records, %v", h.Records, len(want), it.Err())
		}
	})
}

// FuzzFrame: what is in a slot is refused, or is a frame that the writer makes of its records.
func FuzzFrame(f *testing.F) {
	f.Add(unhex(f, goldenFrame))
	f.Add(unhex(f, goldenFrame)[:40])
	f.Add(append(unhex(f, goldenFrame), 1, 2, 3))
	f.Fuzz(func(t *testing.T, slot []byte) {
		slot = slot[:len(slot):len(slot)]
		before := bytes.Clone(slot)
		h, list, err := read(t, slot)
		if !bytes.Equal(slot, before) {
			t.Fatal("reading changed the slot")
		}
		if err != nil {
			return
		}
		got := write(t, make([]byte, len(slot)), h, list)
		if !bytes.Equal(got, slot[:len(got)]) {
			t.Fatalf("%x becomes %x", slot, got)
		}
	})
}
