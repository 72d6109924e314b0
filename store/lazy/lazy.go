// Package lazy keeps what costs time at the start of a process until it is needed: most runs of oc need none of its regular
// expressions.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles an expression when it is first asked for; one that does not compile panics then.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
