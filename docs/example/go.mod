module example

go 1.26.0

require xroce v0.0.0

replace xroce => ../..
