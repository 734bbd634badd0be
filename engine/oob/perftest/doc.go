// Package perftest exchanges over TCP what the tools of perftest tell each other
// (ib_send_bw and its family), so that either end may be one of them.
//
// It knows the messages and who speaks first, nothing of queue pairs and no
// clock; a deadline is that of the connection. All messages have a fixed length,
// and each step goes both ways: the client speaks, the server answers.
//
//	Versions  16 bytes, text and NULs          "6.06"
//	Plan      128 bytes, text and NULs         what is about to be done: ours alone
//	System    2 x 4 bytes, big-endian          buffer cycle, cache line
//	MTU       2 bytes, a digit and NUL         code of the path MTU
//	Keys      108 bytes, text and NUL          once per QP, and as a barrier
//	Reports   5 x 8 bytes, big-endian          results of a bandwidth test
//	Done      5 bytes                          "done", both ends speak at once
//
// All tests begin with Versions, System and MTU, and Plan if Versions said that both ends
// know it; which step comes when after that
// depends on the test. Sizes and order are those that perftest 4.5 (version 6.06 of
// its exchange) shows on the wire; src/perftest_communication.c has more.
//
// A conversation belongs to one goroutine at a time.
package perftest
