package mem

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestRegisterRefuses(t *testing.T) {
	d := new(Domain)
	b := make([]byte, 16)
	for _, tt := range []struct {
		name   string
		domain *Domain
		addr   uint64
		access Access
		want   error
		text   string
	}{
		{"no domain", nil, 0, LocalWrite, ErrNoDomain, ""},
		{"no domain comes first", nil, math.MaxUint64, 1 << 30, ErrNoDomain, ""},
		{"unknown flag", d, 0, 1 << 30, ErrAccess, ": UNKNOWN"},
		{"unknown comes before later", d, 0, OnDemand | 1<<10, ErrAccess, ": ON_DEMAND|UNKNOWN"},
		{"remote write alone", d, 0, RemoteWrite, ErrAccess, ": REMOTE_WRITE needs LOCAL_WRITE"},
		{
			"remote atomic alone", d, 0, RemoteAtomic | RemoteRead, ErrAccess,
			": REMOTE_READ|REMOTE_ATOMIC needs LOCAL_WRITE",
		},
		{"huge pages alone", d, 0, HugeTLB, ErrAccess, ": HUGETLB needs ON_DEMAND"},
		{
			"persistent without sync", d, 0, FlushPersistent, ErrAccess,
			": FLUSH_PERSISTENT needs memory that can be synced",
		},
		{
			"on demand without a pager", d, 0, OnDemand, ErrAccess,
			": ON_DEMAND is for memory with a pager, and only for it",
		},
		{"zero based elsewhere", d, 16, ZeroBased, ErrAccess, ": ZERO_BASED at address 0x10"},
		{"wraps", d, math.MaxUint64 - 14, LocalWrite, ErrRange, ": 16 bytes at 0xfffffffffffffff1"},
	} {
		k := newKeys(1)
		_, err := k.RegisterAt(tt.domain, b, tt.addr, tt.access)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		} else if got, want := err.Error(), tt.want.Error()+tt.text; got != want {
			t.Errorf("%s: error %q, want %q", tt.name, got, want)
		}
		if k.Len() != 0 {
			t.Errorf("%s: a region is there", tt.name)
		}
	}
}

// flagRules say what Register makes of a set of flags, in words rather than in
// masks: the first rule that fits decides.
var flagRules = []struct {
	fits func(has func(string) bool, synced bool) bool
	want error
}{
	{func(has func(string) bool, _ bool) bool { return has("UNKNOWN") }, ErrAccess},
	{func(has func(string) bool, _ bool) bool {
		return has("HUGETLB") || has("ON_DEMAND") // the memory has no pager
	}, ErrAccess},
	{func(has func(string) bool, _ bool) bool {
		return (has("REMOTE_WRITE") || has("REMOTE_ATOMIC")) && !has("LOCAL_WRITE")
	}, ErrAccess},
	{func(has func(string) bool, synced bool) bool {
		return has("FLUSH_PERSISTENT") && !synced
	}, ErrAccess},
	{func(func(string) bool, bool) bool { return true }, nil},
}

// flagBits are the flags by bit number; the optional one has no effect.
var flagBits = []struct {
	bit  int
	name string
}{
	{0, "LOCAL_WRITE"},
	{1, "REMOTE_WRITE"},
	{2, "REMOTE_READ"},
	{3, "REMOTE_ATOMIC"},
	{4, "MW_BIND"},
	{5, "ZERO_BASED"},
	{6, "ON_DEMAND"},
	{7, "HUGETLB"},
	{8, "FLUSH_GLOBAL"},
	{9, "FLUSH_PERSISTENT"},
	{20, "RELAXED_ORDERING"},
	{31, "INVALIDATABLE"},
	{29, "optional"},
	{19, "UNKNOWN"},
}

// TestEverySetOfFlags is accepted, and then reported, or refused with the right
// error.
func TestEverySetOfFlags(t *testing.T) {
	d, b := new(Domain), make([]byte, 8)
	for set := range 1 << len(flagBits) {
		var access Access
		var names []string
		for i, f := range flagBits {
			if set&(1<<i) != 0 {
				access |= 1 << f.bit
				names = append(names, f.name)
			}
		}
		has := func(name string) bool {
			return strings.Contains("|"+strings.Join(names, "|")+"|", "|"+name+"|")
		}
		for _, sync := range []Sync{nil, func(int, int) error { return nil }} {
			var want error
			for _, rule := range flagRules {
				if rule.fits(has, sync != nil) {
					want = rule.want
					break
				}
			}
			k := newKeys(1)
			r, err := k.RegisterMemory(d, Memory{Bytes: b, Addr: 0, Sync: sync}, access)
			switch {
			case !errors.Is(err, want) || err == nil != (want == nil):
				t.Errorf("%v, synced %t: error %v, want %v", names, sync != nil, err, want)
			case err == nil && r.Access() != access&^(1<<29):
				t.Errorf("%v: the region has %s", names, r.Access())
			}
		}
	}
}

// TestAccessRights: a region grants an access exactly when it has all flags that
// the access needs.
func TestAccessRights(t *testing.T) {
	sync := func(int, int) error { return nil }
	flags := []Access{
		LocalWrite, RemoteWrite, RemoteRead, RemoteAtomic, FlushGlobal, FlushPersistent,
	}
	pick := func(set int) (a Access) {
		for i, f := range flags {
			if set&(1<<i) != 0 {
				a |= f
			}
		}
		return a
	}
	k, d := newKeys(6), new(Domain)
	for set := range 1 << len(flags) {
		have := pick(set) | LocalWrite
		r, err := k.RegisterMemory(d, Memory{Bytes: make([]byte, 8), Addr: 0, Sync: sync}, have)
		if err != nil {
			t.Fatal(err)
		}
		for other := range 1 << len(flags) {
			want := OK
			for _, f := range flags {
				if pick(other)&f != 0 && have&f == 0 {
					want = FaultRights
				}
			}
			if got := k.Check(d.Local(), r.RKey(), 0, 8, pick(other)); got != want {
				t.Errorf("%s of a region with %s: %s", pick(other), have, got)
			}
		}
	}
}

func TestAccessString(t *testing.T) {
	for a, want := range map[Access]string{
		0:                       "LOCAL_READ",
		LocalWrite | RemoteRead: "LOCAL_WRITE|REMOTE_READ",
		RemoteAtomic | 1<<10:    "REMOTE_ATOMIC|UNKNOWN",
		1<<10 - 1: "LOCAL_WRITE|REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC|MW_BIND|ZERO_BASED|" +
			"ON_DEMAND|HUGETLB|FLUSH_GLOBAL|FLUSH_PERSISTENT",
		1<<20 | 1<<31: "RELAXED_ORDERING|INVALIDATABLE",
	} {
		if got := a.String(); got != want {
			t.Errorf("%#x prints %s, want %s", uint32(a), got, want)
		}
	}
}
