// Bench does the same work with xroce and with others, in turn, on the same veth
// pair and the same processors, and prints how they compare.
//
//	go run ./bench                        the usual cases, some ten minutes
//	go run ./bench --full                 every case, the whole grid, half an hour
//	go run ./bench --only send-64         the cases whose name begins so
//	go run ./bench --quick                short windows: shows that all of it works
//	go run ./bench --from FILE            the tables of a stored run
//
// It needs root, iproute2 and taskset; gcc, libxdp-dev and libbpf-dev for the
// peers in C, and iperf3 for kernel TCP. What is missing is skipped and said.
// Namespaces and interfaces are its own and removed at the end.
//
// The plan and the progress go to standard error, tables to standard output, and
// the raw rows to a file under bench/results. The exit status is 0 when all rows
// were measured, 1 when one failed, 2 for wrong flags, and 77 when nothing could
// be measured here.
package main
