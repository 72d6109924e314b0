package doctor

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"oc/config"
	"oc/gateway"
	"oc/maintenance"
	"oc/store"
	"oc/store/lock"
)

// Options say what is examined.
type Options struct {
	Config  *config.Config
	Targets []store.Target
	Both    bool // look at the store of the era that OpenClaw does not read too, where there is one
	State   bool // look at the installation as a whole too: its configuration, its signal log
	Only    []Code
	Deep    bool // read transcripts whole, not their ends alone, and check databases on a copy

	Machine lock.Machine
	Owner   gateway.Ownership // who owns the state
	Now     time.Time

	// Sized is told how much there is to look at, before anything that takes
	// long. Progress is told how many bytes of transcripts are done; it may be
	// called from several goroutines. Both may be nil.
	Sized    func(Size)
	Progress func(done, total int64)
}

// Size is how much there is to look at.
type Size struct {
	Stores      int
	Rows        int
	Transcripts int
	Bytes       int64 // of them
}

// An exam is one examination on its way.
type exam struct {
	ctx context.Context
	Options
	sites  []*site
	report *Report
	checks map[Code]*Check
	wanted map[Code]bool // nil: all

	given *maintenance.Snapshot // of the one store, where it was taken before
}

// Examine looks at everything and reports what it finds. It changes nothing.
// The error is that of ctx; whatever else goes wrong is a finding.
func Examine(ctx context.Context, o Options) (*Report, error) {
	x := newExam(ctx, o)
	for _, t := range o.Targets {
		s := x.visit(t)
		x.sites = append(x.sites, s)
		if other := s.other(); o.Both && other != nil {
			x.sites = append(x.sites, other)
		}
	}
	x.measure()
	if err := x.look(); err != nil {
		return nil, err
	}
	x.report.sort()
	return x.report, nil
}

func newExam(ctx context.Context, o Options) *exam {
	x := &exam{ctx: ctx, Options: o, report: &Report{Deep: o.Deep}, checks: map[Code]*Check{}}
	for _, c := range Checks() {
		x.checks[c.Code] = &c
	}
	if len(o.Only) > 0 {
		x.wanted = map[Code]bool{}
		for _, code := range o.Only {
			x.wanted[code] = true
		}
	}
	return x
}

// look goes through the families.
func (x *exam) look() error {
	for i := range families {
		f := &families[i]
		if !x.wants(f) && !(f.Name == "transcripts" && (x.wants(&tokenFamily) || x.wants(&secretFamily))) { // which need what is read there
			continue
		}
		if f.store != nil {
			for _, s := range x.sites {
				f.store(x, s)
			}
		}
		if f.state != nil && x.State {
			f.state(x)
		}
		if err := x.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// wants tells whether any check of a family was asked for.
func (x *exam) wants(f *Family) bool {
	return x.wanted == nil || slices.ContainsFunc(f.Checks, func(c Check) bool { return x.wanted[c.Code] })
}

// looksFor tells whether any of some checks was asked for.
func (x *exam) looksFor(codes ...Code) bool {
	return x.wanted == nil || slices.ContainsFunc(codes, func(c Code) bool { return x.wanted[c] })
}

// find adds a finding. What it does not say is what its check says.
func (x *exam) find(f Finding) {
	c := x.checks[f.Code]
	if c == nil {
		panic("a finding with the code " + string(f.Code) + ", which no check has")
	}
	if !x.looksFor(f.Code) {
		return
	}
	if f.Severity == "" {
		f.Severity = c.Severity
	}
	if f.Consequence == "" {
		f.Consequence = c.Matters
	}
	if f.Remedy == "" {
		f.Remedy = c.Remedy
	}
	if f.Command == "" && f.Remedy != None {
		f.Command = c.Command
	}
	f.Era = x.eraOf(&f)
	x.report.Findings = append(x.report.Findings, f)
}

// eraOf is the era of what a finding is about; "" where it is of none.
func (x *exam) eraOf(f *Finding) store.Era {
	for _, s := range x.sites {
		switch {
		case f.File == s.path || f.File == "" && f.Store == s.path && f.Store != "":
			return s.era
		case f.File != "" && filepath.Dir(f.File) == s.dir:
			return store.FileEra
		}
	}
	return ""
}

func (x *exam) nowMs() float64 { return float64(x.Now.UnixMilli()) }
