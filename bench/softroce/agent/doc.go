// Command agent runs in the guest of package softroce and does what the host
// orders: it starts shell commands, sends what they print, and says how they
// ended. It ends when the host closes its end of the port.
package main
