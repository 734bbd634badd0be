// Package load is the work that is measured: sending, receiving, forwarding and
// exchanging frames as fast as one processor can, over our AF_XDP sockets and
// over those of github.com/asavie/xdp. The C peers under bench/cpeer do the same
// work in the same steps.
//
// Every sender writes its frames once and sends the same bytes again and again;
// every receiver reads the first byte of each frame. What is measured is so the
// way of the frames, not the making of them.
package load
