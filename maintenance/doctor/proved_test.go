package doctor

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
)

// What the tests of this run have shown of fixes, by code.
var proved struct {
	sync.Mutex
	undone, killed map[Code]bool
}

// undoes notes fixes that are held to bringing all back with undo.
func undoes(codes ...Code) { note(&proved.undone, codes) }

// survives notes fixes that are killed, and made to fail, at their operations.
func survives(codes ...Code) { note(&proved.killed, codes) }

func note(m *map[Code]bool, codes []Code) {
	proved.Lock()
	defer proved.Unlock()
	if *m == nil {
		*m = map[Code]bool{}
	}
	for _, c := range codes {
		(*m)[c] = true
	}
}

// unproved are the codes with a fix that some proofs lack.
func unproved(undone, killed map[Code]bool) (lacks []string) {
	for _, c := range Checks() {
		if remedyOf(c.Code) == "" {
			continue
		}
		if !undone[c.Code] {
			lacks = append(lacks, fmt.Sprintf("no test takes the fix %s back", c.Code))
		}
		if !killed[c.Code] {
			lacks = append(lacks, fmt.Sprintf("no test kills the fix %s", c.Code))
		}
	}
	return lacks
}

// When all tests have run, each fix has one that takes it back and one that kills it.
func TestMain(m *testing.M) {
	code := m.Run()
	whole := true
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		whole = whole && flag.Lookup(name).Value.String() == ""
	}
	if whole && code == 0 {
		for _, lack := range unproved(proved.undone, proved.killed) {
			fmt.Fprintln(os.Stderr, "oc/maintenance/doctor:", lack)
			code = 1
		}
	}
	os.Exit(code)
}

// The check of TestMain can fail.
func TestUnproved(t *testing.T) {
	all := map[Code]bool{}
	for _, c := range Checks() {
		all[c.Code] = true
	}
	if lacks := unproved(all, all); len(lacks) > 0 {
		t.Errorf("%q", lacks)
	}
	delete(all, StaleTemp)
	if lacks := unproved(all, all); len(lacks) != 2 {
		t.Errorf("%q", lacks)
	}
	if lacks := unproved(nil, nil); len(lacks) < 2*20 {
		t.Errorf("only %d fixes", len(lacks)/2)
	}
}
