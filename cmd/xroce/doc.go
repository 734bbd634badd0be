// Command xroce is RoCEv2 in user space at the command line: it shows what this
// machine can do, demonstrates the transport, talks to verbs tools and moves
// files.
//
// Each subcommand is one file of this package: flags in, tables or JSON out.
// The work is done in packages below this directory. Results go to stdout, logs
// and progress to stderr. Exit codes: 0 it worked, 1 it failed, 2 the command
// line is wrong, 3 this machine or this user cannot do it, 130 interrupted. A server
// that is interrupted while it waits for clients has done what it was for: 0.
package main
