// Package seal encrypts what a tunnel sends and refuses what was not, was changed, or came
// before: AES-256-GCM with a counter, and a window of counters that were seen (RFC 4303 3.4.3,
// RFC 6479). Keys come from elsewhere: a Sealer and an Opener are of one direction and of one
// agreement.
//
//	 0                   1                   2                   3
//	+---------------+-----------------------------------------------+
//	|    type 1     |                       0                       |
//	+---------------+-----------------------------------------------+
//	|                  index: which key, by its receiver            |
//	+---------------------------------------------------------------+
//	|                            counter                            |
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                   hint: 32 bits of the sender                 |
//	+---------------------------------------------------------------+
//	|         what is sealed, as long as it was, and a tag of 16    |
//	+---------------------------------------------------------------+
//
// All numbers are big-endian. The header is authenticated, and its index and counter are the
// nonce. No format of package encap begins with 1.
//
// Nothing here does I/O, draws random numbers or allocates for a packet. A Sealer may be used by
// several goroutines; an Opener belongs to one caller at a time.
package seal
