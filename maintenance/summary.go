package maintenance

// A Summary is OpenClaw's document of a cleanup in its numbers, with its
// meaning of them (spec/maintenance.md 3.1): files without bytes are not
// counted, and the budget is measured as its dry run does.
type Summary struct {
	AgentID, StorePath string
	Mode               Mode
	DryRun             bool
	BeforeCount        int // rows that OpenClaw loads
	AfterCount         int
	Repaired           int
	Missing            int
	DMScopeRetired     int
	ModelRunPruned     int
	Pruned             int // stale
	Capped             int
	Artifacts          Artifacts
	DiskBudget         *DiskBudget // nil without a budget
	WouldMutate        bool

	// Of a database, by its schema: sessions that are put aside where they are. 2026.8.2, schema 19, tells nothing of those that are put
	// aside because there are too many, because it deletes those.
	Schema                int
	Archived, CapArchived int

	// Beyond OpenClaw's.
	CronPruned, ByHand int
}

// Artifacts is unreferencedArtifacts.
type Artifacts struct {
	ScannedFiles, RemovedFiles int
	FreedBytes                 int64
	OlderThanMs                float64 // Never where there is no age rule
}

// DiskBudget is diskBudget.
type DiskBudget struct {
	TotalBytesBefore, TotalBytesAfter int64
	RemovedFiles, RemovedEntries      int
	FreedBytes                        int64 // of files
	MaxBytes, HighWaterBytes          int64
	OverBudget                        bool // it was, even if it is no more
}

func (d *draft) summary() Summary {
	s := Summary{
		AgentID: d.s.Agent, StorePath: d.s.Store, Mode: d.p.Mode, DryRun: true,
		BeforeCount: len(d.s.Rows), AfterCount: d.left() + d.added, Repaired: len(d.mends),
		Missing: d.counts[FixMissing], DMScopeRetired: d.counts[DMScope], ModelRunPruned: d.counts[ModelRun],
		Pruned: d.counts[Stale], Capped: d.counts[Cap], CronPruned: d.counts[CronRetention], ByHand: d.counts[ByHand],
		Artifacts:   Artifacts{d.unlinks.scanned, d.unlinks.removed, d.unlinks.freed, d.p.PruneAfter},
		WouldMutate: len(d.order)+len(d.mends)+len(d.puts)+len(d.files) > 0,
	}
	if d.sweep == nil {
		return s
	}
	// Where OpenClaw's preview would take other rows than its run, what is
	// done is what is said.
	w := d.shadow
	if len(w.rows) != len(d.sweep.rows) {
		w = d.sweep
	}
	s.DiskBudget = &DiskBudget{w.before, w.total, w.full, len(w.rows), w.freed, d.p.MaxDiskBytes, d.p.HighWaterBytes, w.over}
	return s
}

// none is the summary of a store that is not there.
func none(p *Policy, s *Snapshot, dryRun bool) Summary {
	return Summary{AgentID: s.Agent, StorePath: s.Store, Mode: p.Mode, DryRun: dryRun, Artifacts: Artifacts{OlderThanMs: p.PruneAfter}}
}

// warn makes the numbers of a run those of warn mode: nothing is swept, the
// budget is measured.
func (s *Summary) warn(p *Policy, part *draft) {
	s.Artifacts = Artifacts{OlderThanMs: p.PruneAfter}
	if p.MaxDiskBytes == 0 {
		return
	}
	part.p = p
	part.budget()
	w := part.sweep
	s.DiskBudget = &DiskBudget{w.before, w.total, 0, 0, 0, p.MaxDiskBytes, p.HighWaterBytes, w.over}
}
