package conversation

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// play parses a text that makes one run, and plays it.
func play(t *testing.T, text string) error {
	t.Helper()
	f, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return f.Runs[0].Play()
}

const setting = `qp rc sq_psn=100 rq_psn=500
region a 64 local_write|remote_write|remote_read
`

// TestNothingUnannounced: each conversation leaves something out or tells
// something wrong, and the error says what came instead.
func TestNothingUnannounced(t *testing.T) {
	const send = setting + "post send wr=1 sge=a:0:4 signaled\n"
	const sent = send + "> send_only psn=100 data=a:0:4 ackreq\n"
	const write = setting + `< write_only psn=500 va=a:8 rkey=a dmalen=2 data="hi"` + "\n"
	for name, tt := range map[string]struct{ text, want string }{
		"packet at the end": {
			send, "f:4: at the end: the QP sends: > send_only psn=100 ackreq len=4",
		},
		"packet before time": {
			send + "+1ms\n", "f:4: +1ms: 1ms before it is over, the QP sends: > send_only psn=100",
		},
		"packet for nothing": {send + "> nothing\n", "f:4: > nothing: the QP sends: > send_only"},
		"no packet": {
			setting + "> send_only psn=100\n",
			"f:3: > send_only psn=100: got: > nothing",
		},
		"other PSN": {
			send + "> send_only psn=101 len=4 ackreq\n", "got: > send_only psn=100 ackreq len=4",
		},
		"other opcode":  {send + "> send_first psn=100 len=4 ackreq\n", "got: > send_only"},
		"other flag":    {send + "> send_only psn=100 len=4\n", "got: > send_only"},
		"one flag more": {send + "> send_only psn=100 len=4 ackreq se\n", "got: > send_only"},
		"other length":  {send + "> send_only psn=100 len=3 ackreq\n", "got: > send_only"},
		"no length":     {send + "> send_only psn=100 ackreq\n", "got: > send_only"},
		"other payload": {
			send + "> send_only psn=100 data=a:1:4 ackreq\n",
			"got another payload from byte 0 on",
		},
		"silent about a field": {
			setting + "post write wr=1 sge=a:0:4 remote=a:8 rkey=a\n" +
				"> write_only psn=100 va=a:8 len=4 ackreq\n",
			"the file has to say more: rkey, dmalen; got: > write_only psn=100 ackreq va=a:8 " +
				"rkey=a dmalen=4 len=4",
		},
		"completion at the end": {
			sent + "< ack psn=100\n", "at the end: unpolled: cqe wr=1 success send",
		},
		"completion for none": {
			sent + "< ack psn=100\ncqe none\n", "f:6: cqe none: got: cqe wr=1 success send",
		},
		"other completion": {
			sent + "< ack psn=100\ncqe wr=1 rem_op_err\n", "got: cqe wr=1 success send",
		},
		"no completion": {sent + "cqe wr=1 success send\n", "got: cqe none"},
		"never posted":  {setting + "cqe wr=7 success send\n", "no work request 7 is posted"},
		"receive completion": {
			setting + "post recv wr=1 sge=a:0:8\n< send_only_imm psn=500 imm=9 data=\"hi\"\n" +
				"cqe wr=1 success recv len=2\n",
			"got: cqe wr=1 success recv len=2 imm=9",
		},
		"memory":        {write, "at the end: memory changed: a:8 has 6869"},
		"other memory":  {write + `memory a:8:2 = "ho"` + "\n", "a:9 has 69, want 6f"},
		"drop":          {setting + "< ack psn=99\n", "at the end: counter drop_ghost_response 1"},
		"other counter": {setting + "counter sent_pkts 1\n", "got: counter sent_pkts 0"},
		"other step":    {setting + "< ack psn=99\ndropped icrc\n", "got: dropped ghost_response"},
		"state": {
			write + "memory a:8:2 = \"hi\"\nstate sqd\n",
			"f:5: state sqd: got: state RTS",
		},
		"state unspoken": {
			setting + "< send_last psn=500 len=4\n" +
				"> ack psn=500 syndrome=invalid_request msn=0\nevent qp_req_err\n",
			"at the end: the QP is in ERR, last announced was RTS",
		},
		"event": {
			setting + "< send_last psn=500 len=4\n" +
				"> ack psn=500 syndrome=invalid_request msn=0\nstate err\n",
			"at the end: event qp_req_err was not announced",
		},
		"other event": {
			setting + "< send_last psn=500 len=4\nevent qp_fatal\n", "got: event qp_req_err",
		},
		"no SRQ":    {setting + "post recv srq wr=1\n", "there is no srq"},
		"late SRQ":  {setting + "srq\n", "one srq, before the QP"},
		"XRC alone": {"qp xrc_recv\n", "an XRC_RECV needs an srq before it"},
		"valid":     {setting + "valid a no\n", "got: true"},
		"completion": {
			setting + "post recv wr=1 sge=a:0:4\n" +
				"< send_only psn=500 data=a:0:1\ncqe wr=1 success recv len=1 grh\n",
			"got: cqe wr=1 success recv len=1",
		},
		"no event":       {setting + "event qp_fatal\n", "got no event"},
		"no deadline":    {setting + "deadline 1ms\n", "got: deadline none"},
		"other deadline": {sent + "deadline 1ms\n", "got: deadline 67.108864ms"},
		"a deadline":     {sent + "+7ms\ndeadline none\n", "got: deadline 60.108864ms"},
		"resend": {
			sent + "+70ms\n", "2.891136ms before it is over, the QP sends: > send_only psn=100",
		},
		"no error":    {setting + `modify access=none error="oops"` + "\n", "it worked"},
		"other error": {setting + `modify timeout=1 error="oops"` + "\n", "another error: roce:"},
		"an error": {
			setting + "modify timeout=1\n",
			"f:3: modify timeout=1: roce: invalid argument: RTS to RTS does not take TIMEOUT",
		},
		"attribute": {setting + "attr timeout=1\n", "got: attr timeout=14"},
		"decoder": {
			setting + "< send_only psn=500 tver=1\n", "the decoder says bad_tver, not ok",
		},
		"no decoder": {
			setting + "< send_only psn=500 refused=bad_pad\n", "the decoder says ok, not bad_pad",
		},
		"PSN of the peer": {setting + "< send_only\n", "psn= is missing"},
		"two QPs":         {setting + "qp rc\n", "there is a QP already"},
		"no QP": {
			"post send wr=1\n",
			"f:1: post send wr=1: the file has to make its QP first",
		},
		"two regions":     {setting + "region a 1 none\n", "there is a region a already"},
		"no region":       {setting + "post send wr=1 sge=b:0:4\n", "no region b"},
		"posted twice":    {sent + "post send wr=1\n", "a work request 1 is posted already"},
		"beyond a region": {setting + "memory a:60:5 = %0:0:5\n", "a has 64 bytes"},
		"notified":        {setting + "notified rq 1\n", "got: 0"},
		"no overrun":      {setting + "overrun rq\n", "got no overrun"},
		"gone already": {
			setting + "deregister a\nderegister a\n",
			"mem: the key is not registered",
		},
	} {
		err := play(t, tt.text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %s", name, err, tt.want)
		}
	}
}

// TestExamples plays what the documentation shows.
func TestExamples(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "in between:\n//\n")
	example, _, ok := strings.Cut(rest, "//\n// # Exactness")
	if !ok {
		t.Fatal("doc.go has no example")
	}
	var lines []string
	for _, l := range strings.Split(example, "\n") {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(l, "//"), "\t"))
	}
	page, err := os.ReadFile("../../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ = strings.Cut(string(page), "in between:\n\n```\n")
	other, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("docs/testing.md has no example")
	}
	for _, text := range []string{strings.Join(lines, "\n"), other} {
		if err := play(t, text); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
		if !strings.Contains(text, "cqe wr=1 success send") {
			t.Errorf("the example is cut short:\n%s", text)
		}
	}
}

// TestList: rows with their files, a reason, or a bare none; numbers that have
// the same files share a line.
func TestList(t *testing.T) {
	var files []*File
	for name, text := range map[string]string{
		"a.txt": "covers: timeout 3; timeout 4; timeout 5; nak 0x61",
		"b.txt": "covers: nak 0x61; timeout 5",
		"c.txt": "covers: nak 0x62\ntodo: later",
	} {
		f, err := Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	list := List(files)
	for _, want := range []string{
		"\n| 3 to 4 | 4.096 us * 2^3 ... 4.096 us * 2^4 | a |\n",
		"\n| 5 | 4.096 us * 2^5 | a, b |\n",
		"\n| 0x61 | NAK invalid request: REM_INV_REQ_ERR | a, b |\n",
		"REM_ACCESS_ERR | **expected to fail:** c |\n", "| LOC_EEC_OP_ERR |  | none: reliable",
		"REM_OP_ERR | **none** |\n",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no line %q", want)
		}
	}
	missing := strings.Join(Uncovered(files), "\n")
	if strings.Contains(missing, "nak 0x62") || !strings.Contains(missing, "nak 0x63") ||
		strings.Contains(missing, "LOC_EEC_OP_ERR") {
		t.Errorf("uncovered: %s", missing)
	}
}
