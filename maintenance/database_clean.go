package maintenance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"oc/maintenance/journal"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/sqlfile"
)

// CleanDatabase plans a cleanup of a database and the steps that do it. p is the policy with the defaults of its release, see [Policy.ForDatabase].
func CleanDatabase(ctx context.Context, d *Database, p *Policy) (*Plan, []journal.Step, error) {
	full, err := d.draft(p)
	if err != nil {
		return nil, nil, err
	}
	plan, steps, err := full.finish(ctx)
	if err != nil || p.Mode != Warn {
		return plan, steps, err
	}
	// In warn mode only what is asked for by name is done.
	part, err := d.draft(p.asked())
	if err != nil {
		return nil, nil, err
	}
	asked, steps, err := part.finish(ctx)
	if err != nil {
		return nil, nil, err
	}
	plan.merge(asked)
	budget := plan.preview.DiskBudget
	plan.run = asked.run
	plan.run.DiskBudget = budget
	plan.run.Artifacts = Artifacts{OlderThanMs: p.PruneAfter}
	return plan, steps, nil
}

// DeleteFromDatabase plans to take sessions out of a database, with the transcripts that no other session needs: they become archives, in it and
// as files, under OpenClaw's names (spec/sqlite-store.md 3.3, release 2026.9.6). The error is a *NoRow.
func DeleteFromDatabase(ctx context.Context, d *Database, keys []string) (*Plan, []journal.Step, error) {
	return ReviewDatabase(ctx, d, nil, keys)
}

// A databaseDraft is a plan for a database in the making.
type databaseDraft struct {
	*draft
	d      *Database
	total  int64    // bytes on disk; -1: nobody asked
	burnt  []string // sessions that go without an archive, for the budget
	freed  int64
	purged []published // archives that go, for the budget
	whole  bool        // the database itself is among the files that go
}

// draft decides what goes.
func (d *Database) draft(p *Policy) (x *databaseDraft, err error) {
	x = &databaseDraft{draft: newDraft(p, d.Snapshot, d.Taken), d: d, total: -1}
	x.decideRows(d.Schema)
	if p.ByHand() {
		return x, nil
	}
	x.strays()
	if p.MaxDiskBytes > 0 {
		if x.total, err = d.physical(); err != nil {
			return nil, err
		}
		if p.Mode == Enforce && x.total > p.MaxDiskBytes {
			err = x.evict()
		}
	}
	return x, err
}

// strays are files that no session of the database has: leftovers of the other era, and of writes that did not end.
func (x *databaseDraft) strays() {
	known := map[string]bool{}
	for i := range x.s.Rows {
		known[x.s.Rows[i].ID] = true
	}
	x.unlinks = unlinked{}
	for i := range x.s.Files {
		f := &x.s.Files[i]
		if !f.direct {
			continue
		}
		x.unlinks.scanned++
		age := x.now - f.written()
		switch {
		case f.Class == jsonfile.Temp && age > tempAfter:
			x.do(Action{Kind: Remove, Rule: OldTemp, Reason: "left behind by a write that did not end", file: i})
		case x.d.both || f.Class != jsonfile.Live && f.Class != jsonfile.Sidecar && f.Class != jsonfile.Checkpoint, known[f.Session], !(age > x.p.PruneAfter):
			continue
		case f.Class == jsonfile.Live && content(f.Path, f.Size) != Empty:
			x.leave(i, KeptUnlinked, Unlinked, "it holds messages, and no session of the database has it: openclaw doctor imports it, or remove it by hand")
			continue
		default:
			x.do(Action{Kind: Remove, Rule: Unlinked, Reason: "no session of the database has it, and it is older than pruneAfter", file: i})
		}
		x.unlinks.removed++
		x.unlinks.freed += f.Size
	}
}

// finish makes the plan and its steps.
func (x *databaseDraft) finish(ctx context.Context) (*Plan, []journal.Step, error) {
	p := &Plan{Agent: x.s.Agent, Store: x.s.Store, Mode: x.p.Mode, Now: x.at, Protected: x.stayed(), Problems: slices.Concat(x.s.Problems, x.notes)}
	keys := make([]string, 0, len(x.order))
	for _, i := range x.order {
		r := &x.s.Rows[i]
		keys = append(keys, r.Key)
		p.Actions = append(p.Actions, Action{Kind: DropRow, Key: r.Key, Rule: x.gone[i], Reason: x.why[i], Bytes: int64(len(r.Val)), Applies: true, file: -1})
	}
	p.Actions = append(p.Actions, x.puts...)
	if x.whole {
		keys = nil // they go with it
	}
	steps, made, err := x.steps(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	p.Actions = append(append(p.Actions, made...), x.files...)
	p.Before, p.After = x.amounts(p.Actions)
	x.measure(p)
	return p, steps, nil
}

// measure fills the numbers of a plan.
func (x *databaseDraft) measure(p *Plan) {
	s := Summary{
		AgentID: x.s.Agent, StorePath: x.s.Store, Mode: x.p.Mode, DryRun: true, Schema: x.d.Schema,
		BeforeCount: len(x.s.Rows), AfterCount: x.left(), CronPruned: x.counts[CronRetention], ByHand: x.counts[ByHand],
		Missing: x.counts[FixMissing], DMScopeRetired: x.counts[DMScope], ModelRunPruned: x.counts[ModelRun],
		Artifacts: Artifacts{x.unlinks.scanned, x.unlinks.removed, x.unlinks.freed, x.p.PruneAfter}, WouldMutate: !p.Empty(),
	}
	for i := range p.Actions {
		switch a := &p.Actions[i]; {
		case a.Kind == DropRow && a.Rule == Stale:
			s.Pruned++
		case a.Kind == DropRow && a.Rule == Cap:
			s.Capped++
		case a.Kind == PutRow && a.Rule == Cap:
			s.Capped, s.CapArchived = s.Capped+1, s.CapArchived+1
		case a.Kind == PutRow:
			s.Archived++
		}
	}
	if x.total >= 0 {
		b := &DiskBudget{TotalBytesBefore: x.total, TotalBytesAfter: x.total, MaxBytes: x.p.MaxDiskBytes, HighWaterBytes: x.p.HighWaterBytes, OverBudget: x.total > x.p.MaxDiskBytes}
		for _, a := range x.purged {
			b.RemovedFiles++
			b.FreedBytes += a.size
		}
		b.RemovedEntries = len(x.burnt)
		b.TotalBytesAfter = max(0, x.total-x.freed)
		s.DiskBudget = b
		if b.TotalBytesAfter > b.MaxBytes && x.p.Mode == Enforce {
			p.Unmet = append(p.Unmet, Unmet{
				Rule: Budget, Limit: b.MaxBytes, Left: b.TotalBytesAfter, Protected: len(p.Protected),
				Reason: fmt.Sprintf("about %d bytes stay, %d more than session.maintenance.maxDiskBytes allows: a database gives its room back only when it is vacuumed, see oc db vacuum", b.TotalBytesAfter, b.TotalBytesAfter-b.MaxBytes),
			})
		}
	}
	if limit := x.p.MaxEntries; limit > 0 && !x.p.ByHand() && x.p.Mode == Enforce && len(x.p.Keys) == 0 {
		if n := x.counted(x.d.Schema); n > limit {
			p.Unmet = append(p.Unmet, Unmet{Rule: Cap, Limit: int64(limit), Left: int64(n), Protected: len(p.Protected), Reason: fmt.Sprintf("%s stay, %d more than session.maintenance.maxEntries allows: the others are protected", rows(n), n-limit)})
		}
	}
	p.preview, p.run = s, s
	p.run.DryRun = false
}

// Sessions that are deleted, or written, in one transaction at most.
const (
	batchSessions = 256
	batchBytes    = 64 << 20
)

// steps are what does the plan: the archives, the rows, the files that go.
func (x *databaseDraft) steps(ctx context.Context, keys []string) (steps []journal.Step, made []Action, err error) {
	removals, err := x.d.db.Removals(x.d.rows, keys)
	if err != nil {
		return nil, nil, err
	}
	pack := &packer{ctx: ctx, path: x.d.path, at: map[string]int{}, sums: map[string][32]byte{}, ready: map[string][]byte{}}
	if info, err := os.Stat(x.s.Dir); err == nil {
		pack.dir = info.IsDir()
	}
	burnt := map[string]bool{}
	for _, key := range x.burnt {
		burnt[key] = true
	}
	var batches [][]agentdb.Removal
	size := int64(batchBytes)
	for _, r := range removals {
		var bytes int64
		for _, e := range r.Gone {
			bytes += e.Bytes
			if e.Bytes == 0 || burnt[r.Key] {
				continue
			}
			generation := e.Generation
			if generation == "" {
				generation = fmt.Sprintf("%x", sha256.Sum256([]byte(e.SessionID)))[:32]
			}
			name := agentdb.ArchiveName(e.SessionID, "deleted", x.at.UnixMilli(), generation)
			pack.at[e.SessionID] = len(pack.all)
			pack.all = append(pack.all, packed{e.SessionID, name})
			if pack.dir {
				target := filepath.Join(x.s.Dir, name)
				content := pack.content(len(pack.all) - 1)
				steps = append(steps, journal.Step{Kind: journal.Create, Phase: journal.Place, Path: realPath(target), Mode: 0o600, Tie: e.SessionID, Content: content})
				made = append(made, Action{Kind: Create, Key: r.Key, Target: target, Place: true, Class: jsonfile.Archive, Rule: x.gone[x.s.byKey[r.Key]], Reason: "the archive of what is deleted, " + fmt.Sprint(e.Bytes) + " bytes before it is compressed", Applies: true, file: -1})
			}
		}
		if n := len(batches); n == 0 || len(batches[n-1]) >= batchSessions || size+bytes > batchBytes {
			batches, size = append(batches, nil), 0
		}
		batches[len(batches)-1] = append(batches[len(batches)-1], r)
		size += bytes
	}
	now, path := x.at.UnixMilli(), x.d.path
	for _, batch := range batches {
		steps = append(steps, Rows(path, func(tx *sqlfile.Tx) error {
			w, err := agentdb.NewWriter(tx, path, now)
			if err != nil {
				return err
			}
			for i := range batch {
				archived, err := pack.archived(x.s.Dir, batch[i].Gone, now)
				if err == nil {
					err = w.Remove(&batch[i], archived)
				}
				if err != nil {
					return changedSince(err)
				}
			}
			return nil
		}))
	}
	for batch := range slices.Chunk(x.puts, batchSessions) {
		steps = append(steps, Rows(path, func(tx *sqlfile.Tx) error {
			w, err := agentdb.NewWriter(tx, path, now)
			if err != nil {
				return err
			}
			for i := range batch {
				if err := x.putAside(w, &batch[i]); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if len(x.purged) > 0 {
		steps = append(steps, Rows(path, func(tx *sqlfile.Tx) error {
			for _, a := range x.purged {
				if _, err := tx.Exec("DELETE FROM session_transcript_archives WHERE archive_name = ?1", a.name); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	for i := range x.files {
		a := &x.files[i]
		expect := journal.Stamp{}
		info, err := os.Lstat(a.Target)
		if errors.Is(err, os.ErrNotExist) {
			a.Applies = false
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		expect = journal.StampOf(info)
		phase := journal.Clear
		if x.whole && ofDatabase(a.Target, x.d.path) { // it goes before what belongs to it
			phase = journal.Swap
		}
		steps = append(steps, journal.Step{Kind: journal.Remove, Phase: phase, Path: realPath(a.Target), Expect: &expect})
	}
	return steps, made, nil
}

// putAside writes what the row of a session says when it is archived where it is.
func (x *databaseDraft) putAside(w *agentdb.Writer, a *Action) error {
	e, ok, err := w.DB().Entry(a.Key)
	if err != nil {
		return err
	}
	was := &x.s.Rows[x.s.byKey[a.Key]]
	if !ok || !bytes.Equal(e.Raw(row.UpdatedAt), was.Raw(row.UpdatedAt)) || e.IsSet(row.ArchivedAt) {
		return fmt.Errorf("%s: %w", a.Key, journal.ErrChanged)
	}
	return w.Put(a.Key, row.Edit(e.Val, a.shelve...))
}

func changedSince(err error) error {
	if errors.Is(err, agentdb.ErrChanged) {
		return fmt.Errorf("%w: %w", journal.ErrChanged, err)
	}
	return err
}

// A packer makes archives of transcripts in the order of their files, several from one look at the database: it holds so many as fit in ahead
// bytes, and one.
type packer struct {
	ctx   context.Context
	path  string
	dir   bool // there is a directory for the files
	all   []packed
	at    map[string]int // by transcript
	ready map[string][]byte
	sums  map[string][32]byte
}

type packed struct{ id, name string }

const ahead = 16 << 20

func (k *packer) content(i int) func(io.Writer) error {
	return func(w io.Writer) error {
		b, err := k.get(i)
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	}
}

// get packs transcript i, and those after it that fit.
func (k *packer) get(i int) ([]byte, error) {
	name := k.all[i].name
	if b, ok := k.ready[name]; ok {
		delete(k.ready, name)
		return b, nil
	}
	err := agentdb.Read(context.WithoutCancel(k.ctx), k.path, func(db *agentdb.DB) error {
		clear(k.ready)
		size := 0
		for _, t := range k.all[i:] {
			var b bytes.Buffer
			if err := db.Pack(t.id, &b); err != nil {
				return err
			}
			k.ready[t.name], k.sums[t.name] = b.Bytes(), sha256.Sum256(b.Bytes())
			if size += b.Len(); size > ahead {
				break
			}
		}
		return nil
	})
	b := k.ready[name]
	delete(k.ready, name)
	return b, err
}

// archived gives the archives of transcripts that go, from the files that were written: they are verified before a row goes.
func (k *packer) archived(dir string, gone []agentdb.Ended, now int64) (map[string]agentdb.Archived, error) {
	out := map[string]agentdb.Archived{}
	for _, e := range gone {
		i, ok := k.at[e.SessionID]
		if !ok {
			continue
		}
		name := k.all[i].name
		if !k.dir {
			b, err := k.get(i)
			if err != nil {
				return nil, err
			}
			out[e.SessionID] = agentdb.Archived{Name: name, Blob: b}
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if sha256.Sum256(b) != k.sums[name] {
			return nil, fmt.Errorf("%s: %w: its bytes are not those that were written", filepath.Join(dir, name), journal.ErrChanged)
		}
		out[e.SessionID] = agentdb.Archived{Name: name, Blob: b, Published: now}
	}
	return out, nil
}

// A published archive is a file and its row in the database.
type published struct {
	name string
	size int64
}

// evict brings the disk below the budget as far as it goes, in OpenClaw's order: archives that are files, the oldest first; then sessions that
// were put aside because there were too many. Unlike OpenClaw's, it leaves the archives that this very run makes (spec/sqlite-store.md 3.3).
func (x *databaseDraft) evict() error {
	enough := func() bool { return x.total-x.freed <= x.p.HighWaterBytes }
	files := map[string]int{}
	for i := range x.s.Files {
		if f := &x.s.Files[i]; f.direct && f.Class == jsonfile.Archive {
			files[f.Base] = i
		}
	}
	_, archives, err := x.d.db.Filed()
	if err != nil {
		return err
	}
	slices.SortStableFunc(archives, func(a, b agentdb.Archive) int { return int(a.CreatedAt - b.CreatedAt) })
	reason := fmt.Sprintf("the sessions take %d bytes, the budget is %d", x.total, x.p.MaxDiskBytes)
	take := func(i int) {
		x.do(Action{Kind: Remove, Rule: Budget, Reason: reason, file: i})
		x.freed += x.s.Files[i].Size
	}
	for _, a := range archives {
		i, ok := files[a.Name]
		if enough() || !ok {
			continue
		}
		take(i)
		delete(files, a.Name)
		x.freed += a.Bytes
		x.purged = append(x.purged, published{a.Name, x.s.Files[i].Size})
	}
	rest := slices.Collect(maps.Values(files))
	slices.SortFunc(rest, func(a, b int) int { return x.s.Files[a].ModTime.Compare(x.s.Files[b].ModTime) })
	for _, i := range rest {
		if enough() {
			break
		}
		take(i)
		x.purged = append(x.purged, published{x.s.Files[i].Base, x.s.Files[i].Size})
	}
	var aside []int
	for i := range x.s.Rows {
		r := &x.s.Rows[i]
		if why, _ := r.Text(row.ArchiveReason); x.gone[i] == "" && why == "active-session-cap" && !x.shelved[i] {
			aside = append(aside, i)
		}
	}
	slices.SortStableFunc(aside, func(a, b int) int {
		at := func(i int) float64 { n, _ := x.s.Rows[i].Number(row.ArchivedAt); return n }
		return int(at(a) - at(b))
	})
	for _, i := range aside {
		if enough() {
			break
		}
		r := &x.s.Rows[i]
		size, err := x.d.db.Size(r.ID)
		if err != nil {
			return err
		}
		x.freed += size.Bytes + int64(len(r.Val))
		x.burnt = append(x.burnt, r.Key)
		x.drop(i, Budget, "%s, and it was put aside because there were too many", reason)
	}
	return nil
}
