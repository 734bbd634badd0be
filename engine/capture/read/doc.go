// Package read reads the packets of capture files: pcap in both byte orders with microseconds or
// nanoseconds, pcapng, and ERF, each also in gzip or zstd.
//
// It reads from the io.Reader that it is given, a pipe as well as a file, and says of a packet
// when, where and how long it was; what is in it is for package roce/dissect. Nothing that a
// file says is believed: no length makes a Reader keep more than a block of MaxBlock bytes and
// MaxInterfaces descriptions, so that the size of a file does not matter, nor does malice. A file
// that ends in the middle is read to there; ErrCut then tells it from one that is whole.
//
// A Reader belongs to one caller at a time. That of NewAhead has a goroutine until it is closed;
// others start none.
package read
