package cm

// SearchTime is how long a manager searches for a destination.
const SearchTime = searchTime
