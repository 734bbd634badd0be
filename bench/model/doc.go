// Package model lets two machines of messages (roce/msg) talk over a wire that is a model, under
// virtual time: what each step costs is a number that is given. So it says what a protocol does
// where the delay of the link, or the number of peers, is one that no test machine has. A run is
// the same every time.
package model
