package dialogue

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"xroce/bench/softroce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// A treatment is what becomes of a field.
type treatment int

// The treatments. A field without a rule is compared by its value.
const (
	leftOut    treatment = iota
	inKey                // it says which packet this is
	bySender             // compared by the message that told it first
	byReceiver           // the same; it is the other end's
	byPorts              // compared by whether it follows from the ports
	byMAC                // compared by whether it follows from the MAC address
	bySrcQP              // compared by whether it is the QP number of the sender
)

// A rule says why the value of a field cannot be compared, and what is instead.
type rule struct {
	field string
	do    treatment
	token token // of bySender and byReceiver
	why   string
}

// Reasons of several rules.
const (
	drawn    = "each host draws its own"
	counted  = "a host's own count of its QPs"
	inMemory = "where a program has its memory"
	ofTheKey = "what says which packet it is"
)

// firstPSN is the name of what the first request of a connection says.
const firstPSN = "BTH.PSN of the first"

// rules are all fields that are not compared by their value. Fields beside the
// headers that function headers names are the Ethernet addresses and the
// identification of IPv4, which are a host's own, and the payload of data, in which
// programs tell addresses and keys; ICRCs are verified.
var rules = []rule{
	{"BTH.Opcode", inKey, 0, ofTheKey},
	{"BTH.PSN", inKey, 0, ofTheKey + ", counted from the first on"},
	{firstPSN, byReceiver, aPSN, drawn},
	{"BTH.DestQP", byReceiver, aQPN, counted},
	{"DETH.SrcQP", bySender, aQPN, counted},
	{"ImmDt.Data", bySrcQP, 0, "udaddy tells its QP number"},
	{"RETH.VA", leftOut, 0, inMemory},
	{"RETH.RKey", leftOut, 0, drawn},
	{"AtomicETH.VA", leftOut, 0, inMemory},
	{"AtomicETH.RKey", leftOut, 0, drawn},
	{"AtomicAckETH.OrigData", leftOut, 0, "memory that the programs do not set"},
	{"IETH.RKey", leftOut, 0, drawn},
	{"IP.FlowLabel", byPorts, 0, "it follows from a port that each host draws"},
	{"UDP.SourcePort", leftOut, 0, "a hash that each stack chooses; its range is compared"},

	{"MAD.Attribute", inKey, 0, ofTheKey},
	{"MAD.TID", bySender, aTransactionID, drawn},
	{"REQ.LocalCommID", bySender, aCommID, drawn},
	{"REQ.LocalCAGUID", byMAC, 0, "a host's own"},
	{"REQ.LocalQPN", bySender, aQPN, counted},
	{"REQ.StartingPSN", bySender, aPSN, drawn},
	{"REQ.Primary.FlowLabel", byPorts, 0, "it follows from a port that each host draws"},
	{"REQ.IP.SrcPort", leftOut, 0, drawn},
	{"REP.LocalCommID", bySender, aCommID, drawn},
	{"REP.RemoteCommID", byReceiver, aCommID, drawn},
	{"REP.LocalQPN", bySender, aQPN, counted},
	{"REP.StartingPSN", bySender, aPSN, drawn},
	{"REP.LocalCAGUID", byMAC, 0, "a host's own"},
	{"RTU.LocalCommID", bySender, aCommID, drawn},
	{"RTU.RemoteCommID", byReceiver, aCommID, drawn},
	{"MRA.LocalCommID", bySender, aCommID, drawn},
	{"MRA.RemoteCommID", byReceiver, aCommID, drawn},
	{"REJ.LocalCommID", bySender, aCommID, drawn},
	{"REJ.RemoteCommID", byReceiver, aCommID, drawn},
	{"DREQ.LocalCommID", bySender, aCommID, drawn},
	{"DREQ.RemoteCommID", byReceiver, aCommID, drawn},
	{"DREQ.RemoteQPN", byReceiver, aQPN, counted},
	{"DREP.LocalCommID", bySender, aCommID, drawn},
	{"DREP.RemoteCommID", byReceiver, aCommID, drawn},
	{"SIDR_REQ.RequestID", bySender, aRequestID, drawn},
	{"SIDR_REQ.IP.SrcPort", leftOut, 0, drawn},
	{"SIDR_REP.RequestID", byReceiver, aRequestID, drawn},
	{"SIDR_REP.QPN", bySender, aQPN, counted},
}

// ruleOf is the rule of each field that has one.
var ruleOf = func() map[string]rule {
	m := map[string]rule{}
	for _, r := range rules {
		m[r.field] = r
	}
	return m
}()

// A reader turns the fields of one packet into what is compared.
type reader struct {
	*book
	from   softroce.End
	packet *wire.Packet
	by     cm.Attribute // the message that the packet is, 0 for data
	fields map[string]string
}

// read takes a header or a message, field by field.
func (r *reader) read(name string, v any) {
	for _, f := range flatten(name, reflect.ValueOf(v)) {
		r.put(f.name, f.value)
	}
}

// put takes a field, as its rule says.
func (r *reader) put(name string, v reflect.Value) {
	rule, has := ruleOf[name]
	if !has {
		r.fields[name] = text(v)
		return
	}
	switch rule.do {
	case bySender:
		r.fields[name] = r.own(rule.token, v.Uint())
	case byReceiver:
		r.fields[name] = r.origin(rule.token, other(r.from), v.Uint())
	case byPorts:
		r.fields[name] = "of the ports"
		if label := uint32(v.Uint()); label == 0 || !r.labels[label] {
			r.fields[name] = fmt.Sprintf("0x%05x", label)
		}
	case bySrcQP:
		r.fields[name] = "the SrcQP"
		if qpn := uint32(v.Uint()); qpn != r.packet.DETH().SrcQP {
			r.fields[name] = fmt.Sprintf("0x%08x", qpn)
		}
	case byMAC:
		gid := wire.LinkLocalGID(r.packet.SrcMAC)
		r.fields[name] = "of the MAC address"
		if guid := fmt.Sprintf("%016x", v.Uint()); guid != hex.EncodeToString(gid[8:]) {
			r.fields[name] = "0x" + guid
		}
	}
}

// own is the origin of a value of the sender's. Transaction IDs are of both: who
// answers copies them.
func (r *reader) own(t token, value uint64) string {
	owner := r.from
	if t == aTransactionID {
		owner = softroce.A
	}
	if r.by == 0 {
		return r.origin(t, owner, value)
	}
	return r.tell(t, owner, value, r.by)
}

// A field is one of a header.
type field struct {
	name  string
	value reflect.Value
}

// flatten lists the fields of a struct, those of structs in it as well.
func flatten(name string, v reflect.Value) (list []field) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for i := range v.NumField() {
		f := field{name + "." + v.Type().Field(i).Name, v.Field(i)}
		if _, prints := f.value.Interface().(fmt.Stringer); !prints &&
			f.value.Kind() == reflect.Struct {
			list = append(list, flatten(f.name, f.value)...)
			continue
		}
		list = append(list, f)
	}
	return list
}

// text prints the value of a field; bytes without the zeros at their end.
func text(v reflect.Value) string {
	if s, prints := v.Interface().(fmt.Stringer); prints {
		return s.String()
	}
	if v.Kind() == reflect.Array {
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return "0x" + strings.TrimRight(hex.EncodeToString(b), "0")
	}
	return fmt.Sprint(v.Interface())
}
