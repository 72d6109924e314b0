//go:build race

package commands

// everyNth operation gets a fault: all of them without the race detector, which makes each take ten times as long.
const everyNth = 13
