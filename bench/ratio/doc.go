// Package ratio compares two things that were measured in turn on a machine
// that does not hold still.
//
// On a shared machine the same command differs by a factor of two from one
// minute to the next, so a number alone says nothing. What holds is the ratio
// of two runs made right after one another, in alternating order so that a
// drift favours neither, taken often enough that the median and the quartiles
// of the ratios mean something.
package ratio
