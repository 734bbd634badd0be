package vethpair

// Drop is drop.
var Drop = drop
