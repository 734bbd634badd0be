// Package wireshark has the dissector, in Lua, that teaches Wireshark and tshark what they do not
// know of RoCE and of xroce, and installs it. It has no state.
package wireshark
