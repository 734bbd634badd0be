package read

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"xroce/roce/dissect"
)

var (
	little order = binary.LittleEndian
	big    order = binary.BigEndian
)

// all reads a file, of which packets are copied.
func all(t testing.TB, in io.Reader) (list []Packet, err error) {
	t.Helper()
	r, err := New(in)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		var p Packet
		if err := r.Next(&p); err != nil {
			if again := r.Next(&p); !errors.Is(again, err) {
				t.Errorf("first %v, then %v", err, again)
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return list, err
		}
		p.Data = bytes.Clone(p.Data)
		list = append(list, p)
	}
}

// TestFormats: the same packets come out of files of every format, with the same times, also when
// bytes come one by one.
func TestFormats(t *testing.T) {
	want := samples(t, "rc_send_v4.pcap")
	micro := pcapFile(little, 1000, want)
	files := map[string][]byte{
		"pcap": micro, "pcap, other order": pcapFile(big, 1000, want),
		"pcap, nanoseconds":              pcapFile(little, 1, want),
		"pcap, nanoseconds, other order": pcapFile(big, 1, want),
		"pcap, modified":                 pcapFileOf(little, magicModified, want),
		"pcap, modified, other order":    pcapFileOf(big, magicModified, want),
		"pcapng":                         pcapngFile(little, 6, 1000, want),
		"pcapng, other order":            pcapngFile(big, 6, 1000, want),
		"pcapng, nanoseconds":            pcapngFile(little, 9, 1, want),
		"pcapng, two sections": append(pcapngFile(big, 9, 1, want[:5]),
			pcapngFile(little, 6, 1000, want[5:])...),
		"ERF": erfFile(want), "gzip": gzipped(t, micro), "zstd": zstandard(t, micro),
	}
	for name, file := range files {
		for _, in := range []io.Reader{
			bytes.NewReader(file), iotest.OneByteReader(bytes.NewReader(file)),
		} {
			got, err := all(t, in)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: %d packets, %v", name, len(got), err)
			}
			for i, p := range got {
				data, link := p.Data, dissect.LinkEthernet
				if name == "ERF" {
					data, link = data[erfHeaderLen+2:], dissect.LinkERF
				}
				if p.Number != i+1 || p.Time != want[i].at || p.Link != link ||
					!bytes.Equal(data, want[i].data) || p.Length < len(data) {
					t.Fatalf("%s: packet %d: %+v", name, i+1, p)
				}
				if strings.HasPrefix(name, "pcapng") &&
					(p.Comment != "hello" || p.Direction != Out || p.Dropped != 7) {
					t.Errorf("%s: packet %d: %+v", name, i+1, p)
				}
			}
		}
	}
}

// TestCut: a file that ends anywhere is read to there, and says so unless it ends between packets.
func TestCut(t *testing.T) {
	list := samples(t, "rc_atomic_v4.pcap")[:3]
	for name, file := range map[string][]byte{
		"pcap": pcapFile(little, 1, list), "pcapng": pcapngFile(little, 9, 1, list),
		"modified": pcapFileOf(little, magicModified, list),
	} {
		ends := 0
		for n := range len(file) {
			got, err := all(t, bytes.NewReader(file[:n]))
			switch {
			case err == nil:
				ends++
			case !errors.Is(err, ErrCut) && !(n < 4 && errors.Is(err, ErrFormat)):
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
			for i, p := range got {
				if !bytes.Equal(p.Data, list[i].data) {
					t.Errorf("%s of %d bytes: packet %d differs", name, n, i+1)
				}
			}
		}
		if ends < 3 || ends > 10 {
			t.Errorf("%s: whole at %d places", name, ends)
		}
	}
	for name, file := range map[string][]byte{
		"gzip": gzipped(t, pcapFile(little, 1, list)),
		"zstd": zstandard(t, pcapFile(little, 1, list)),
	} {
		if _, err := all(t, bytes.NewReader(file[:len(file)-9])); !errors.Is(err, ErrCut) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefused: what is no capture, or contradicts itself, is an error, and takes no memory.
func TestRefused(t *testing.T) {
	le := binary.LittleEndian
	head := section(little, 9)
	huge := le.AppendUint32(le.AppendUint32(bytes.Clone(head), blockPacket), 0xfffffff0)
	packet := pcapFile(little, 1, nil)
	packet = append(packet, make([]byte, 8)...)
	packet = le.AppendUint32(le.AppendUint32(packet, 0xffffffff), 0xffffffff)
	many := bytes.Clone(head)
	for range MaxInterfaces {
		many = append(many, block(little, blockInterface, make([]byte, 8))...)
	}
	stranger := append(bytes.Clone(head), packetBlock(little, 1, nil)...)
	le.PutUint32(stranger[len(head)+8:], 1)
	differ := append(bytes.Clone(head), packetBlock(little, 1, nil)...)
	differ[len(differ)-1] = 1
	comment := append(bytes.Clone(head), packetBlock(little, 1, nil)...)
	comment[bytes.Index(comment, []byte("hello"))-1] = 0xff
	named := append(bytes.Clone(head),
		block(little, blockInterface, append(make([]byte, 8), 2, 0, 200, 0))...)
	for name, tt := range map[string]struct {
		file []byte
		want error
	}{
		"too long a comment":  {comment, ErrDamaged},
		"too long a name":     {named, ErrDamaged},
		"nothing":             {nil, ErrFormat},
		"text":                {[]byte("this is no capture, but a sentence"), ErrFormat},
		"zeros":               {make([]byte, 100), ErrFormat},
		"a block of 4 GiB":    {huge, ErrDamaged},
		"a packet of 4 GiB":   {packet, ErrDamaged},
		"too many interfaces": {many, ErrDamaged},
		"a packet of nobody":  {stranger, ErrDamaged},
		"two lengths":         {differ, ErrDamaged},
		"an unknown block of nothing": {
			append(bytes.Clone(head), 9, 0, 0, 0, 0, 0, 0, 0), ErrDamaged,
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := all(t, bytes.NewReader(tt.file))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, not %v", name, err, tt.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%s: took %d bytes", name, n)
		}
	}
}

// TestTimes: time stamps of every resolution are nanoseconds, or nothing where they cannot be.
func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		resol byte
		stamp uint64
		want  int64
	}{
		{0, 5, 5e9},
		{6, 1_000_001, 1_000_001_000},
		{9, 123, 123},
		{12, 1_999, 1},
		{19, 1 << 63, 922337203},
		{20, 1, 0},
		{127, 1, 0},
		{0x80 | 10, 512, 5e8},
		{0x80 | 63, 1 << 63, 1e9},
		{0x80 | 64, 1, 0},
		{0, 1 << 63, 0},
	} {
		var d description
		d.resolve(tt.resol)
		if got := d.time(tt.stamp); got != tt.want {
			t.Errorf("%d of resolution %#x: %d, want %d", tt.stamp, tt.resol, got, tt.want)
		}
	}
}

// TestInterfaces: each packet has the time and the link of its own interface, also where another
// section has other interfaces.
func TestInterfaces(t *testing.T) {
	describe := func(o order, link dissect.Link, resol ...byte) []byte {
		body := o.AppendUint16(nil, uint16(link))
		body = append(body, make([]byte, 6)...)
		for _, r := range resol {
			body = o.AppendUint16(o.AppendUint16(body, optTsResol), 1)
			body = append(body, r, 0, 0, 0)
		}
		return block(o, blockInterface, body)
	}
	packet := func(o order, iface uint32, stamp uint64) []byte {
		b := packetBlock(o, stamp, []byte{1, 2, 3})
		o.PutUint32(b[blockHeadLen:], iface)
		return b
	}
	const second = 1_700_000_000
	head := len(section(little, 9)) - len(describe(little, 0, 9)) - 4
	file := slices.Concat(section(little, 9)[:head], describe(little, dissect.LinkEthernet),
		describe(little, dissect.LinkRaw, 9), describe(little, dissect.LinkEthernet, 0x80|10),
		packet(little, 0, second*1e6+1), packet(little, 2, second<<10+1),
		packet(little, 1, second*1e9+1), packet(little, 0, second*1e6+2),
		section(big, 3), describe(big, dissect.LinkRaw, 0), packet(big, 1, second),
		packet(big, 0, second*1e3+1))
	got, err := all(t, bytes.NewReader(file))
	if err != nil || len(got) != 6 {
		t.Fatalf("%d packets, %v", len(got), err)
	}
	for i, want := range []struct {
		iface int
		link  dissect.Link
		nanos int64
	}{
		{0, dissect.LinkEthernet, 1000},
		{2, dissect.LinkEthernet, 976562},
		{1, dissect.LinkRaw, 1},
		{0, dissect.LinkEthernet, 2000},
		{1, dissect.LinkRaw, 0},
		{0, dissect.LinkEthernet, 1e6},
	} {
		if p := got[i]; p.Interface != want.iface || p.Link != want.link ||
			p.Time != second*1e9+want.nanos {
			t.Errorf("packet %d: %+v, want %+v", i+1, p, want)
		}
	}
}

// FuzzReader: no file makes a Reader panic or run for ever, and what it says of packets holds.
func FuzzReader(f *testing.F) {
	list := samples(f, "rc_atomic_v4.pcap")[:2]
	for _, file := range [][]byte{
		pcapFile(little, 1, list), pcapFile(big, 1000, list), pcapngFile(little, 9, 1, list),
		pcapFileOf(big, magicModified, list), pcapngFile(big, 6, 1000, list), erfFile(list),
		gzipped(f, pcapFile(little, 1, list)), zstandard(f, pcapFile(little, 1, list)),
	} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := New(bytes.NewReader(file))
		if err != nil {
			return
		}
		defer r.Close()
		var p Packet
		// Gzip packs a thousand times at most; a packet has a header of eight bytes or more.
		for n := 0; r.Next(&p) == nil; n++ {
			if len(p.Data) > MaxBlock || p.Length < len(p.Data) || n > 1<<20 {
				t.Fatalf("packet %d: %d of %d bytes", n, len(p.Data), p.Length)
			}
		}
	})
}
