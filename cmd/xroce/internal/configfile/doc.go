// Package configfile reads files that set flags, such as that of xroce tunnel --config: lines of
// NAME = VALUE, where NAME is that of a flag, and comments behind a #. Nothing in it is for
// concurrent use.
package configfile
