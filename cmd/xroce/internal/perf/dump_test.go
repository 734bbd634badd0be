package perf

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"xroce/cmd/perfdump"
	"xroce/roce"
	"xroce/roce/wire"
)

// TestFill: no eight bytes are like others, so none can be in the wrong place unseen.
func TestFill(t *testing.T) {
	b := make([]byte, 1<<16+3)
	fill(b)
	seen := map[uint64]int{}
	for at := 0; at+8 <= len(b); at += 8 {
		v := binary.LittleEndian.Uint64(b[at:])
		if before, ok := seen[v]; ok {
			t.Fatalf("0x%x is at %d and at %d", v, before, at)
		}
		seen[v] = at
	}
	if bytes.Equal(b[len(b)-3:], []byte{0, 0, 0}) {
		t.Error("the end was left out")
	}
	var counts [256]int
	for _, v := range b {
		counts[v]++
	}
	if least, most := slices.Min(counts[:]), slices.Max(counts[:]); least == 0 || most > 2*least {
		t.Errorf("a byte is there %d times, another %d times", least, most)
	}
}

// TestCountBegins: nothing looks like the first message of ib_write_lat before it has
// come, whatever its size.
func TestCountBegins(t *testing.T) {
	for _, c := range []Config{
		{Test: Test{Write, true}, QPs: 1, Size: 1000},
		{Test: Test{Write, true}, QPs: 1, Size: 1 << maxSizeLog, All: true},
	} {
		l, err := newLayout(&c, ownSystem)
		if err != nil {
			t.Fatal(err)
		}
		memory := make([]byte, l.size())
		initMemory(memory, &c, l, wire.MTU4096)
		for _, n := range c.sizes(wire.MTU4096) {
			if v := memory[l.in(0)+n-1]; v != 0 {
				t.Errorf("the last byte of a message of %d bytes begins as %d", n, v)
			}
		}
	}
}

// TestDumpOfTest: the dump of a test says where its messages went.
func TestDumpOfTest(t *testing.T) {
	c := Config{
		Test: Test{Verb: Send}, Type: roce.TypeRC, QPs: 1, Size: 100, Iters: 5, TxDepth: 5,
		RxDepth: 10, CQMod: 1, PostList: 1, RecvPostList: 1, Timeout: 20, GIDIndex: AutoGID,
	}
	dumps := [2]perfdump.Dump{}
	playWith(t, c, &dumps)
	from, to := dumps[0].QPs[0], dumps[1].QPs[0]
	if from.QPN != to.RemoteQPN || to.QPN != from.RemoteQPN || dumps[0].PathMTU != 4096 ||
		dumps[0].Test != "send-bw" || dumps[0].Size != 100 {
		t.Errorf("%+v and %+v", dumps[0].Head, dumps[1].Head)
	}
	for n := range c.Iters {
		sent := dumps[0].Before[from.Send.Of(n):][:c.Size]
		if !bytes.Equal(sent, dumps[1].After[to.Receive.Of(n):][:c.Size]) {
			t.Errorf("message %d is not where the dump says", n)
		}
	}
	if from.Send.Of(0) == from.Send.Of(1) || bytes.Equal(dumps[1].Before, dumps[1].After) {
		t.Error("nothing moved")
	}
}
