package engine

import (
	"testing"

	"xroce/engine/nic"
)

func TestDescribeIRQs(t *testing.T) {
	got := describeIRQs([]nic.IRQ{
		{Number: 27, Name: "eth0-rx-0", CPUs: "0-3"}, {Number: 28, CPUs: "1"},
	})
	if want := "eth0-rx-0 on 0-3, 28 on 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBusyPollAdvice(t *testing.T) {
	for b, want := range map[nic.BusyPoll]bool{
		{DeferHardIRQs: 2, FlushTimeout: 200000}: true, {DeferHardIRQs: 2}: false,
		{FlushTimeout: 200000}: false, {DeferHardIRQs: -1, FlushTimeout: -1}: false,
	} {
		if b.Deferred() != want {
			t.Errorf("%+v: deferred %v", b, !want)
		}
	}
}
