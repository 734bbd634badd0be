package ratio

// Order is the sequence in which n variants run in a round: as they are in
// even rounds, backwards in odd ones. Two variants so run A B, B A, A B: each is
// as often the first as the second, and a machine that slows down steadily
// slows both by as much.
func Order(n, round int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
		if round%2 == 1 {
			order[i] = n - 1 - i
		}
	}
	return order
}
