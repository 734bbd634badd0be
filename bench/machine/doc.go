// Package machine says what a number was measured on. A number without these
// facts is an anecdote.
package machine
