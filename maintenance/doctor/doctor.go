// Package doctor looks for what is wrong with the sessions of an installation
// and says how to mend it.
//
//	report, err := doctor.Examine(ctx, doctor.Options{Config: c, Targets: targets, ...})
//
// A Check is one thing that is looked for, with a code that stays; checks of
// one Family look at the same things and stand in one file. A Finding is a
// check that met something: where, by what evidence, why it matters, and what
// to do about it. Looking changes nothing and never fails over what it finds:
// a store that does not parse, a directory that cannot be read, a pipe in place
// of a transcript are findings.
//
// What is wrong is told by the engines that other commands use too, so that
// doctor, cleanup and status give the same answer: the snapshot and the plan of
// oc/maintenance, the scanner of oc/transcript, the locks of oc/store/lock, the
// verdicts of oc/gateway, the signal log of oc/awareness.
//
// The scenarios are those of spec/field-reports.md; what OpenClaw's own doctor
// looks for is in spec/maintenance.md 4 (release 2026.7.35).
package doctor

import (
	"fmt"
	"strings"

	"oc/store"
)

// A Severity says how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error Severity = "error" // something is lost, unreadable or does not work
	Warn  Severity = "warn"  // something will go wrong, or costs
	Info  Severity = "info"  // good to know; alone it is no reason for an exit status
)

// rank orders severities, the worst first.
func (s Severity) rank() int {
	switch s {
	case Error:
		return 0
	case Warn:
		return 1
	}
	return 2
}

// A Remedy says who mends a finding.
type Remedy string

// The remedies.
const (
	Safe    Remedy = "safe"    // doctor --fix does it
	Preview Remedy = "preview" // doctor --fix CODE does it, and shows it before
	ByHand  Remedy = "by-hand" // Finding.Command says what to do
	None    Remedy = "none"    // nothing is to be done, or nothing can be
)

// A Code names a check. It is lower case with dashes and never changes.
type Code string

// A Check is one thing that doctor looks for.
type Check struct {
	Code     Code
	Family   string
	Severity Severity // of its findings, where they do not say another
	Says     string   // what it finds: a sentence without a full stop, for lists and headings
	Matters  string   // the consequence: a sentence for people
	Remedy   Remedy
	Command  string // what to do; "" where nothing is
}

// A Family is the checks that look at the same things.
type Family struct {
	Name   string
	Checks []Check

	store func(*exam, *site) // looks at one store; nil where there is nothing to see
	state func(*exam)        // looks at the installation as a whole
}

// A Subject is where something is wrong. Empty fields say nothing.
type Subject struct {
	Agent string
	Store string // path of the index or of the database
	File  string // path
	Line  int    // from 1; 0: none, or not known
	Byte  int64  // offset in the file; -1: none
	Key   string // of the row
	ID    string // session id
	Entry string // id of the entry of a transcript
}

// A Finding is something that is wrong, or worth knowing.
type Finding struct {
	Code     Code
	Severity Severity
	Subject
	Era         store.Era // of the store or transcript that it is about; "" where it is of none
	Evidence    []string  // facts, a sentence each; never what was said in a session, never a secret
	Consequence string    // why it matters
	Remedy      Remedy
	Command     string // what to do
	More        int    // how many like it in the same file are not listed
}

// families are all of them, in the order in which they are shown.
var families = []Family{
	indexFamily, keyFamily, stampFamily, pathFamily, transcriptFamily, fileFamily, lockFamily, runFamily, configFamily, tokenFamily,
	secretFamily, databaseFamily, tableFamily, signalFamily,
}

// Checks are all checks, by family.
func Checks() (all []Check) {
	for _, f := range families {
		for _, c := range f.Checks {
			c.Family = f.Name
			if c.Remedy == "" {
				c.Remedy = None
			}
			if r := remedyOf(c.Code); r == Safe {
				c.Remedy, c.Command = r, "oc doctor --fix"
			} else if r == Preview {
				c.Remedy, c.Command = r, "oc doctor --fix "+string(c.Code)
			}
			all = append(all, c)
		}
	}
	return all
}

// Unknown is a code that no check has.
type Unknown struct{ Code Code }

func (e *Unknown) Error() string {
	return fmt.Sprintf("there is no check %q; oc doctor --list shows all", string(e.Code))
}

// Select reads a list of codes and names of families, separated by commas. The
// error is an *Unknown.
func Select(words ...string) (codes []Code, err error) {
	for _, word := range strings.FieldsFunc(strings.Join(words, ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		found := false
		for _, c := range Checks() {
			if string(c.Code) == word || c.Family == word {
				codes, found = append(codes, c.Code), true
			}
		}
		if !found {
			return nil, &Unknown{Code(word)}
		}
	}
	return codes, nil
}
