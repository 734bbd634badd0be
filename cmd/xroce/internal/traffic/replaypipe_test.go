package traffic_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine/capture/read"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// A livePipe has what a program wrote into it, and asks that for more when it is empty.
type livePipe struct {
	written []byte
	more    func() ([]byte, error)
}

func (p *livePipe) Read(b []byte) (n int, err error) {
	if len(p.written) == 0 {
		if p.written, err = p.more(); err != nil {
			return 0, err
		}
	}
	n = copy(b, p.written)
	p.written = p.written[n:]
	return n, nil
}

// records returns the header of a pcap file, and its packets with theirs.
func records(t *testing.T, name string) (header []byte, packets [][]byte) {
	t.Helper()
	file, err := os.ReadFile("../../../../roce/wire/testdata/captures/" + name)
	if err != nil {
		t.Fatal(err)
	}
	const headerLen, recordLen = 24, 16
	header, file = slices.Clip(file[:headerLen]), file[headerLen:]
	for len(file) > 0 {
		n := recordLen + int(binary.LittleEndian.Uint32(file[8:]))
		packets, file = append(packets, slices.Clip(file[:n])), file[n:]
	}
	return header, packets
}

// overPipe makes a replay of a pipe in the time of the capture.
func overPipe(t *testing.T, p *livePipe, l *wireLink, c traffic.Clock) *traffic.Replay {
	t.Helper()
	reader, err := read.New(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	w, err := gen.NewRewriter(gen.Rewrite{Path: route().Path}, 1518)
	if err != nil {
		t.Fatal(err)
	}
	return &traffic.Replay{
		Link: l, Reader: reader, Rewriter: w, Speed: 1, Batch: 8, Clock: c,
	}
}

// TestReplayOfPipe: what is due has left when the next packet of a live pipe is waited for, also
// where one of another host is behind it.
func TestReplayOfPipe(t *testing.T) {
	header, packets := records(t, "rc_rnr_v4.pcap")
	const others = 3 // the first packet of the other host
	for name, written := range map[string][]byte{
		"alone":             packets[0],
		"before another's":  slices.Concat(packets[0], packets[others]),
		"behind another's":  slices.Concat(packets[0], packets[others], packets[1]),
		"as many as batch":  slices.Concat(slices.Repeat(packets[:1], 8)...),
		"more than a batch": slices.Concat(slices.Repeat(packets[:1], 9)...),
	} {
		for _, speed := range []float64{0, 1} {
			l, asked := newWireLink(), 0
			p := &livePipe{written: slices.Concat(header, written)}
			r := overPipe(t, p, l, &virtual{tick: 1})
			r.Speed = speed
			var left []int
			p.more = func() ([]byte, error) {
				left = append(left, l.sent)
				if asked++; asked == 2 {
					return nil, io.EOF
				}
				return packets[2], nil
			}
			got, err := r.Run(t.Context())
			n := int(got.Frames)
			if err != nil || n != l.sent || !slices.Equal(left, []int{n - 1, n}) {
				t.Errorf("%s at speed %g: %v had left, %+v, %v", name, speed, left, got, err)
			}
		}
	}
}

// TestReplayPipeInTime: how long a pipe was empty before the first packet, and behind the last, is
// not how late they are.
func TestReplayPipeInTime(t *testing.T) {
	header, packets := records(t, "rc_rnr_v4.pcap")
	c := &virtual{tick: 1}
	p := &livePipe{written: header}
	r := overPipe(t, p, newWireLink(), c)
	next := slices.Concat(packets[:3]...)
	p.more = func() (b []byte, err error) {
		c.now += 10 * clock.Second
		if b, next = next, nil; b == nil {
			err = io.EOF
		}
		return b, err
	}
	got, err := r.Run(t.Context())
	if err != nil || got.Frames != 3 || got.Late != 0 || got.Duration < 10*clock.Second ||
		got.Duration > 11*clock.Second {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReplayPipeCount: behind the last packet that is wanted none is waited for.
func TestReplayPipeCount(t *testing.T) {
	header, packets := records(t, "rc_rnr_v4.pcap")
	p := &livePipe{
		written: slices.Concat(header, packets[0]),
		more:    func() ([]byte, error) { return nil, errors.New("it waits") },
	}
	r := overPipe(t, p, newWireLink(), &virtual{tick: 1})
	r.Count = 1
	if got, err := r.Run(t.Context()); err != nil || got.Frames != 1 || got.Read != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReplayStops: a search among packets of others ends with the context.
func TestReplayStops(t *testing.T) {
	header, packets := records(t, "rc_rnr_v4.pcap")
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	p := &livePipe{written: header, more: func() ([]byte, error) {
		cancel()
		if asked++; asked > 1<<16 {
			return nil, io.EOF // of a search that does not end
		}
		return packets[0], nil
	}}
	r := overPipe(t, p, newWireLink(), &virtual{tick: 1})
	r.From = wire.GIDFromIPv4([4]byte{1})
	if got, err := r.Run(ctx); err != nil || got.Frames != 0 || got.Read > 256 {
		t.Errorf("%+v, %v", got, err)
	}
}
