package msg_test

import "xroce/roce/msg"

// Pieces of masks: what is behind the header of a message, and before the sequence.
const (
	none8  = "0000000000000000 "
	all8   = "ffffffffffffffff "
	all4   = "ffffffff "
	always = all4 + all4 // sequence, released
)

// controlGoldens has a message of each type, in the order of the types. The mask has the bits
// behind the type that it may have set, whatever the rest of their field allows.
var controlGoldens = []struct {
	name, hex, mask, text string
	control               msg.Control
}{
	{
		"ADVERT", "584d 01 01 00 02 0040 00000007 0badcafe 00007f0000001000 0000000000000428" +
			none8 + "00000009 00000123",
		"00 ff ffff" + all4 + all4 + all8 + all8 + none8 + always,
		"ADVERT class=2 epoch=7 slots=64 size=1064 addr=0x7f0000001000 rkey=0xbadcafe " +
			"seq=9 released=291",
		msg.Control{
			Type: msg.TypeAdvert, Class: 2, Number: 64, ID: 7, RKey: 0x0badcafe,
			Addr: 0x7f0000001000, Len: 1064, Sequence: 9, Released: 0x123,
		},
	},
	{
		"ADVERT_ACK", "584d 01 02 00 00 0000 00000008 00000000" + none8 + none8 + none8 +
			"0000000a 00000124",
		"00 ff 0000" + all4 + "00000000" + none8 + none8 + none8 + always,
		"ADVERT_ACK class=0 epoch=8 seq=10 released=292",
		msg.Control{Type: msg.TypeAdvertAck, ID: 8, Sequence: 10, Released: 0x124},
	},
	{
		"CREDIT", "584d 01 03 00 00 0000 00000000 00000000" + none8 + none8 +
			"00000000fffffffe 00000001 00000002",
		"00 00 0000 00000000 00000000" + none8 + none8 + all8 + always,
		"CREDIT large=4294967294 seq=1 released=2",
		msg.Control{Type: msg.TypeCredit, Tag: 0xfffffffe, Sequence: 1, Released: 2},
	},
	{
		"RTS", "584d 01 04 01 00 0000 00000007 01020304 00007f0000002000 0000000000100000" +
			"0000000000000005 00000001 00000002",
		"0b 00 0000" + all4 + all4 + all8 + all8 + all8 + always,
		"RTS flags=GET id=7 len=1048576 addr=0x7f0000002000 rkey=0x1020304 tag=0x5 " +
			"seq=1 released=2",
		msg.Control{
			Type: msg.TypeRTS, Flags: msg.FlagGet, ID: 7, RKey: 0x01020304,
			Addr: 0x7f0000002000, Len: 1 << 20, Tag: 5, Sequence: 1, Released: 2,
		},
	},
	{
		"RTS", "584d 01 04 02 00 0003 00000007 00000000" + none8 + "0000000000100000" +
			"0000000000000005 00000001 00000002",
		"0b 00 ffff" + all4 + "00000000" + none8 + all8 + all8 + always,
		"RTS flags=ACTIVE id=7 handler=3 len=1048576 tag=0x5 seq=1 released=2",
		msg.Control{
			Type: msg.TypeRTS, Flags: msg.FlagActive, Number: 3, ID: 7, Len: 1 << 20,
			Tag: 5, Sequence: 1, Released: 2,
		},
	},
	{
		"RTR", "584d 01 05 00 00 0000 00000007 01020304 00007f0000003000 0000000000010000" +
			"0000000000020000 00000001 00000002",
		"00 00 0000" + all4 + all4 + all8 + all8 + all8 + always,
		"RTR id=7 offset=131072 len=65536 addr=0x7f0000003000 rkey=0x1020304 seq=1 released=2",
		msg.Control{
			Type: msg.TypeRTR, ID: 7, RKey: 0x01020304, Addr: 0x7f0000003000, Len: 1 << 16,
			Tag: 2 << 16, Sequence: 1, Released: 2,
		},
	},
	{
		"ATS", "584d 01 06 00 03 0000 00000007 00000000" + none8 + "0000000000000800" + none8 +
			"00000001 00000002",
		"00 ff 0000" + all4 + "00000000" + none8 + all8 + none8 + always,
		"ATS id=7 status=no_memory len=2048 seq=1 released=2",
		msg.Control{
			Type: msg.TypeATS, Status: msg.StatusNoMemory, ID: 7, Len: 2048, Sequence: 1,
			Released: 2,
		},
	},
	{
		"ATP", "584d 01 07 00 00 0000 00000007 00000000" + none8 + "0000000000000800" +
			"0000000000010000 00000001 00000002",
		"00 00 0000" + all4 + "00000000" + none8 + all8 + all8 + always,
		"ATP id=7 offset=65536 len=2048 seq=1 released=2",
		msg.Control{
			Type: msg.TypeATP, ID: 7, Len: 2048, Tag: 1 << 16, Sequence: 1, Released: 2,
		},
	},
	{
		"CTS", "584d 01 08 00 00 0000 00000007 00000000" + none8 + "0000000000000800" + none8 +
			"00000001 00000002",
		"00 00 0000" + all4 + "00000000" + none8 + all8 + none8 + always,
		"CTS id=7 limit=2048 seq=1 released=2",
		msg.Control{Type: msg.TypeCTS, ID: 7, Len: 2048, Sequence: 1, Released: 2},
	},
	{
		"RTS_CANCEL", "584d 01 09 00 00 0000 00000007 00000000" + none8 + none8 + none8 +
			"00000001 00000002",
		"00 00 0000" + all4 + "00000000" + none8 + none8 + none8 + always,
		"RTS_CANCEL id=7 seq=1 released=2",
		msg.Control{Type: msg.TypeRTSCancel, ID: 7, Sequence: 1, Released: 2},
	},
	{
		"PROVISION_REQ", "584d 01 0a 04 03 0002 00000009 00000000" + none8 +
			"0000000000010028" + none8 + "00000001 00000002",
		"04 ff ffff" + all4 + "00000000" + none8 + all8 + none8 + always,
		"PROVISION_REQ flags=REPLACE class=3 epoch=9 slots=2 need=65576 seq=1 released=2",
		msg.Control{
			Type: msg.TypeProvisionReq, Flags: msg.FlagReplace, Class: 3, Number: 2, ID: 9,
			Len: 65576, Sequence: 1, Released: 2,
		},
	},
	{
		"PROVISION_ACK", "584d 01 0b 00 03 0002 00000009 0a0b0c0d 00007f0000100000" +
			"0000000000010028" + none8 + "00000001 00000002",
		"00 ff ffff" + all4 + all4 + all8 + all8 + none8 + always,
		"PROVISION_ACK class=3 epoch=9 slots=2 size=65576 addr=0x7f0000100000 " +
			"rkey=0xa0b0c0d seq=1 released=2",
		msg.Control{
			Type: msg.TypeProvisionAck, Class: 3, Number: 2, ID: 9, RKey: 0x0a0b0c0d,
			Addr: 0x7f0000100000, Len: 65576, Sequence: 1, Released: 2,
		},
	},
	{
		"PROVISION_NAK", "584d 01 0c 00 04 0000 00000009 00000000" + none8 +
			"0000000000008000" + none8 + "00000001 00000002",
		"00 ff 0000" + all4 + "00000000" + none8 + all8 + none8 + always,
		"PROVISION_NAK epoch=9 status=quota could=32768 seq=1 released=2",
		msg.Control{
			Type: msg.TypeProvisionNak, Status: msg.StatusQuota, ID: 9, Len: 32768, Sequence: 1,
			Released: 2,
		},
	},
	{
		"RELEASE", "584d 01 0d 00 03 0000 00000009 00000000" + none8 + none8 + none8 +
			"00000001 00000002",
		"00 ff 0000" + all4 + "00000000" + none8 + none8 + none8 + always,
		"RELEASE class=3 epoch=9 seq=1 released=2",
		msg.Control{Type: msg.TypeRelease, Class: 3, ID: 9, Sequence: 1, Released: 2},
	},
	{
		"RELEASE_ACK", "584d 01 0e 00 03 0000 00000009 00000000" + none8 + none8 + none8 +
			"00000001 00000002",
		"00 ff 0000" + all4 + "00000000" + none8 + none8 + none8 + always,
		"RELEASE_ACK class=3 epoch=9 seq=1 released=2",
		msg.Control{Type: msg.TypeReleaseAck, Class: 3, ID: 9, Sequence: 1, Released: 2},
	},
	{
		"MATCHED", "584d 01 0f 00 00 0005 00000102 00000000" + none8 + none8 + none8 +
			"00000001 00000002",
		"00 00 ffff" + all4 + "00000000" + none8 + none8 + none8 + always,
		"MATCHED frame=258 record=5 seq=1 released=2",
		msg.Control{Type: msg.TypeMatched, Number: 5, ID: 258, Sequence: 1, Released: 2},
	},
	{
		"FIN", "584d 01 10 00 00 0000 00000000 00000000" + none8 + none8 + none8 +
			"00000001 00000002",
		"00 00 0000 00000000 00000000" + none8 + none8 + none8 + always,
		"FIN seq=1 released=2",
		msg.Control{Type: msg.TypeFIN, Sequence: 1, Released: 2},
	},
	{
		"BYE", "584d 01 11 00 08 0000 00000000 00000000" + none8 + none8 + none8 +
			"00000001 00000002",
		"00 ff 0000 00000000 00000000" + none8 + none8 + none8 + always,
		"BYE status=closed seq=1 released=2",
		msg.Control{Type: msg.TypeBye, Status: msg.StatusClosed, Sequence: 1, Released: 2},
	},
	{
		"RESUME", "584d 01 12 00 00 0102 00000304 00000000" + none8 + "0000000000000506" +
			"0000000000000708 00000000 00000002",
		"00 00 ffff" + all4 + "00000000" + none8 + all8 + all8 + always,
		"RESUME switch=258 control=772 frame=1286 large=1800 seq=0 released=2",
		msg.Control{
			Type: msg.TypeResume, Number: 0x102, ID: 0x304, Len: 0x506, Tag: 0x708, Released: 2,
		},
	},
}
