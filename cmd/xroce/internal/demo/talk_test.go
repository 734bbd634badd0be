package demo

import (
	"slices"
	"testing"

	"xroce/roce"
	"xroce/roce/wire"
)

// spoken is a talk of one READ, one SEND and one refused WRITE, with the packets
// that it makes.
func spoken() (*talk, [2]stream) {
	t := &talk{
		service: wire.ServiceRC, pmtu: wire.MTU1024, qpn: [2]uint32{0x11, 0x12},
		first: [2]wire.PSN{0xffffff, 7},
	}
	t.carried(0, roce.OpRead, 2048)
	t.carried(0, roce.OpSend, 1500)
	t.carried(1, roce.OpWrite, 8)
	t.refused()
	return t, [2]stream{
		{
			{opcode: wire.RCReadRequest, psn: 0xffffff},
			{opcode: wire.RCSendFirst, psn: 1, payload: 1024},
			{opcode: wire.RCSendLast, psn: 2, payload: 476},
			{opcode: wire.RCAck, psn: 7},
		},
		{
			{opcode: wire.RCReadRespFirst, psn: 0xffffff, payload: 1024},
			{opcode: wire.RCReadRespLast, psn: 0, payload: 1024},
			{opcode: wire.RCAck, psn: 2, positive: true},
			{opcode: wire.RCWriteOnly, psn: 7, payload: 8},
		},
	}
}

func TestVerifyTakesWhatIsRight(t *testing.T) {
	talk, sent := spoken()
	var r Report
	if again := talk.verify(sent, tally{&r}); again != 0 || r.Failed != 0 || r.Passed != 8 {
		t.Errorf("%d again, %+v", again, r)
	}
	// An answer that was lost makes the host send again, and a NAK is no fault
	// then.
	sent[0] = slices.Insert(sent[0], 3, sent[0][2])
	sent[1] = append(sent[1], seen{opcode: wire.RCAck, psn: 2})
	r = Report{}
	if again := talk.verify(sent, tally{&r}); again != 1 || r.Failed != 0 {
		t.Errorf("%d again, %+v", again, r)
	}
}

// TestVerifyResumedRead: a host that is not answered for long asks for the rest of a READ again.
func TestVerifyResumedRead(t *testing.T) {
	for name, c := range map[string]struct {
		answer wire.Opcode
		right  bool
	}{
		"the rest anew":       {wire.RCReadRespOnly, true},
		"the first answer":    {wire.RCReadRespLast, true},
		"what was not wanted": {wire.RCReadRespFirst, false},
	} {
		talk, sent := spoken()
		sent[0] = slices.Insert(sent[0], 1, seen{opcode: wire.RCReadRequest, psn: 0})
		sent[1][1].opcode = c.answer
		var r Report
		if again := talk.verify(sent, tally{&r}); again != 1 || (r.Failed == 0) != c.right {
			t.Errorf("%s: %d again, %q", name, again, r.Failures)
		}
	}
	// Nobody asked for the rest again, and yet it begins anew.
	talk, sent := spoken()
	sent[1][1].opcode = wire.RCReadRespOnly
	var r Report
	if talk.verify(sent, tally{&r}); r.Failed == 0 {
		t.Error("an answer that begins anew unasked is taken")
	}
}

// TestVerifyFindsWhatIsWrong changes one thing at a time.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	for name, change := range map[string]func(sent *[2]stream){
		"request missing":  func(s *[2]stream) { s[0] = slices.Delete(s[0], 2, 3) },
		"request too many": func(s *[2]stream) { s[0] = append(s[0], seen{psn: 3}) },
		"other opcode":     func(s *[2]stream) { s[0][1].opcode = wire.RCWriteFirst },
		"other length":     func(s *[2]stream) { s[0][2].payload++ },
		"other PSN":        func(s *[2]stream) { s[0][2].psn++ },
		"answer missing":   func(s *[2]stream) { s[1] = s[1][1:] },
		"answer too many": func(s *[2]stream) {
			s[1] = append(s[1], seen{opcode: wire.RCReadRespOnly, psn: 3})
		},
		"ACK missing":    func(s *[2]stream) { s[1] = slices.Delete(s[1], 2, 3) },
		"NAK for ACK":    func(s *[2]stream) { s[1][2].positive = false },
		"ACK for NAK":    func(s *[2]stream) { s[0][3].positive = true },
		"NAK of another": func(s *[2]stream) { s[0][3].psn = 6 },
		"nothing":        func(s *[2]stream) { *s = [2]stream{} },
	} {
		talk, sent := spoken()
		change(&sent)
		var r Report
		talk.verify(sent, tally{&r})
		if r.Failed == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestVerifyUnreliable(t *testing.T) {
	talk := &talk{service: wire.ServiceUC, pmtu: wire.MTU1024, first: [2]wire.PSN{5, 9}}
	talk.carried(0, roce.OpSendImm, 1025)
	sent := [2]stream{{
		{opcode: wire.UCSendFirst, psn: 5, payload: 1024},
		{opcode: wire.UCSendLastImm, psn: 6, payload: 1},
	}}
	var r Report
	if talk.verify(sent, tally{&r}); r.Failed != 0 {
		t.Errorf("%+v", r)
	}
	sent[1] = stream{{opcode: wire.RCAck, psn: 6, positive: true}}
	if talk.verify(sent, tally{&r}); r.Failed != 1 {
		t.Errorf("an acknowledged unreliable message: %+v", r)
	}
}
