//go:build !race

package commands

// everyNth operation gets a fault.
const everyNth = 1
