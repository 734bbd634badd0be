package roce

import (
	"reflect"
	"slices"
	"testing"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// fill sets every field of a struct of numbers and pointers to something of its own, with
// all bits of it in use.
func fill(t *testing.T, to any) {
	t.Helper()
	v := reflect.ValueOf(to).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			f.SetUint((^uint64(0) - uint64(i)) >> (64 - f.Type().Bits()))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		default:
			t.Fatalf("%s.%s is a %s", v.Type(), v.Type().Field(i).Name, f.Kind())
		}
	}
}

// TestArgumentsRoundTrip: what is packed for an operation comes out again, whatever was in the
// slots before, and what goes to the peer beside it stays.
func TestArgumentsRoundTrip(t *testing.T) {
	const addr, rkey, srqn, imm = 1<<64 - 9, 1<<32 - 8, 1<<24 - 7, 1<<32 - 6
	request := sendWQE{
		remoteAddr: addr, rkey: rkey, srqn: srqn, imm: imm,
		pair: [2]uint64{1<<64 - 5, 1<<64 - 4},
	}
	toPeer := func(name string, w *sendWQE) {
		if w.remoteAddr != addr || w.rkey != rkey || w.srqn != srqn {
			t.Errorf("%s: request to %#x, key %#x, SRQ %#x", name, w.remoteAddr, w.rkey, w.srqn)
		}
	}

	w := request
	w.opcode = OpCmpSwap
	w.packAtomic(1<<64-1, 1<<64-2)
	if add, swap := w.atomic(); add != 1<<64-1 || swap != 1<<64-2 {
		t.Errorf("atomic of %#x and %#x", add, swap)
	}
	toPeer("atomic", &w)

	w = request
	w.opcode = OpFlush
	feth := wire.FETH{SEL: 1<<8 - 1, PLT: 1<<8 - 2}
	w.packFlush(feth, 1<<32-1)
	if h, n := w.flush(); h != feth || n != 1<<32-1 {
		t.Errorf("flush %+v of %d bytes", h, n)
	}
	toPeer("flush", &w)

	w = request
	w.opcode = OpSend
	ah := new(AH)
	w.packDatagram(ah, 1<<32-1, 1<<32-2, 1<<16-1)
	if index := w.pkeyIndex(); index != 1<<16-1 {
		t.Errorf("datagram with P_Key %d", index)
	}
	if to, qpn, qkey := w.datagram(); to != ah || qpn != 1<<32-1 || qkey != 1<<32-2 {
		t.Errorf("datagram to %p, QP %#x, Q_Key %#x", to, qpn, qkey)
	}
	if w.imm != imm {
		t.Errorf("datagram with immediate data %#x", w.imm)
	}

	w = request
	w.opcode = OpBindMW
	var bind mem.Bind
	fill(t, &bind)
	w.packBind(&bind)
	if got := w.bind(); got != bind {
		t.Errorf("bind %+v, want %+v", got, bind)
	}

	w = request
	w.opcode = OpUMR
	var umr mem.UMR
	fill(t, &umr)
	w.packUMR(&umr)
	if got := w.configuration().UMR; got != umr {
		t.Errorf("UMR %+v, want %+v", got, umr)
	}
}

// TestArgumentsOfAnother operation are not read: slots are not what they do not hold.
func TestArgumentsOfAnother(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   []Opcode
		read func(w *sendWQE)
	}{
		{"atomic", []Opcode{OpCmpSwap, OpFetchAdd}, func(w *sendWQE) { w.atomic() }},
		{"flush", []Opcode{OpFlush}, func(w *sendWQE) { w.flush() }},
		{"datagram", nil, func(w *sendWQE) { w.datagram() }},
		{"bind", []Opcode{OpBindMW}, func(w *sendWQE) { w.bind() }},
		{"UMR", []Opcode{OpUMR}, func(w *sendWQE) { w.configuration() }},
	} {
		for op := range OpAtomicWrite + 1 {
			func() {
				defer func() {
					panicked := recover() != nil
					if want := !slices.Contains(tt.of, op); panicked != want {
						t.Errorf("%s read of %s: panicked is %t", tt.name, op, panicked)
					}
				}()
				tt.read(&sendWQE{opcode: op})
			}()
		}
	}
}
