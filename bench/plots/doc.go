// Plots draws what messages cost, from a result file of the bench: make plots.
//
//	go run ./bench/plots --from bench/results/FILE.json --out docs/plots
//
// Each plot is written as SVG and as PNG. A plot whose cases are not in the file is left out, and
// that is said. What no test machine has, long links and many peers, is reckoned by the machines
// of messages themselves over a model of the wire (package bench/model), with the costs that the
// file tells.
package main
