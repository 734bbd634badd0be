// Package analysis prints a report of package roce/analyze for xroce analyze: as text, and as one
// page of HTML with plots, which needs no network and no script. What strangers wrote into a
// capture cannot command a terminal nor a browser. It has no state.
package analysis
