// Package rateplot draws what congestion control did: the rate of each flow and the queue of the
// switch over time, as SVG. It writes to whom it is told and keeps nothing; calls are
// independent of each other.
package rateplot
