// Package plain makes text of a peer fit to be shown: what could move the cursor,
// change colours, or turn the direction of writing is spelled out instead of sent to
// the terminal; and bounds how many lines strangers have logged. All of it is for any number of
// goroutines.
package plain
