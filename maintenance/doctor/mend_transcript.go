package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/jsonfile"

	"oc/config"
	"oc/maintenance"
	"oc/store"
	"oc/store/lock"
	"oc/store/row"
	"oc/store/span"
	"oc/transcript"
)

// A cure is what mends one transcript: layers of splices, each over what the
// one before it gives, and what they do. Lines that no splice touches keep
// their bytes (spec/transcript.md 1.6 to 1.9 and 8).
type cure struct {
	path  string
	wants map[transcript.Code]bool
	met   map[transcript.Code]bool // what was found at first
	now   time.Time

	session func() (string, error) // the id of the session that the transcript is of
	cwd     string                 // for a header that is missing

	layers [][]maintenance.Splice
	did    []string

	text io.ReaderAt // the transcript as mended so far
	size int64
	left []transcript.Finding // what stays

	declined map[refusal]string // what cannot be mended, and why
	became   map[uint64]uint64  // messages that are others now, by their marks as heard has them
}

// What tells the mark of a message on the branch from that of the same message
// in the context.
const (
	inBranch  = 0
	inContext = 1
)

// A refusal is of one finding: its code and the id of its entry. One without an
// entry is of all findings with the code.
type refusal struct {
	code transcript.Code
	id   string
}

// decline notes that a finding stays.
func (c *cure) decline(code transcript.Code, id, why string) {
	if c.declined == nil {
		c.declined = map[refusal]string{}
	}
	c.declined[refusal{code, id}] = why
}

// refused says why a finding stays; "" where it does not.
func (c *cure) refused(code transcript.Code, id string) string {
	if why := c.declined[refusal{code, id}]; why != "" {
		return why
	}
	return c.declined[refusal{code, ""}]
}

// curable are the codes of what a cure mends.
var curable = []transcript.Code{
	transcript.NULTail, transcript.TornTail, transcript.OrphanParent, transcript.DuplicateSame, transcript.OpenCall, transcript.LostResult,
	transcript.NUL, transcript.NotJSON, transcript.NotObject, transcript.BOM, transcript.LateHeader, transcript.NoMessage, transcript.BadRole,
	transcript.NoHeader, transcript.BadHeader, transcript.Cycle, transcript.FirstKept, transcript.BadImage,
}

// diagnose reads the transcript as it is now.
func (c *cure) diagnose() (found []transcript.Finding, tree *transcript.Tree, err error) {
	tree = &transcript.Tree{}
	entries := 0
	s := transcript.Scanner{Tree: tree, Report: func(f transcript.Finding) { found = append(found, f) }}
	if err = s.Read(io.NewSectionReader(c.text, 0, c.size), func(r *transcript.Row) error {
		if !r.Blank && r.Err == nil && r.Kind != transcript.Opaque {
			entries++
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	other := func(f transcript.Finding) bool { return f.Code != transcript.NoHeader && f.Code != transcript.NULTail }
	if entries == 0 && slices.ContainsFunc(found, other) {
		return nil, nil, &NotTranscript{c.path}
	}
	if entries == 0 { // OpenClaw writes a header into an empty file without a word
		found = slices.DeleteFunc(found, func(f transcript.Finding) bool { return f.Code == transcript.NoHeader })
	}
	branch, _ := tree.Branch()
	pairs, err := pairsOf(c.text, branch)
	return append(found, pairs...), tree, err
}

// work finds what mends the transcript, layer by layer, and proves it: what was
// to be mended is gone, and no message that could be reached is lost. What
// would still be there afterwards is left as it is, and all else is mended.
func (c *cure) work(f *os.File, size int64) error {
	for {
		c.text, c.size, c.layers, c.did = f, size, nil, nil
		again, err := c.once()
		if err != nil || !again {
			return err
		}
	}
}

// rounds is how often the steps are gone through: what one mends can show what
// another is for, such as a message of nobody behind NUL bytes.
const rounds = 3

// once is one try. again says that something was declined, so that the next try
// does without it.
func (c *cure) once() (again bool, err error) {
	found, tree, err := c.diagnose()
	if err != nil {
		return false, err
	}
	if c.met == nil {
		c.met = map[transcript.Code]bool{}
		for _, x := range found {
			c.met[x.Code] = true
		}
	}
	before, err := c.heard(tree)
	if err != nil {
		return false, err
	}
	steps := []func([]transcript.Finding, *transcript.Tree) ([]edit, error){c.lines, c.headers, c.doubles, c.kept, c.parents, c.images, c.results}
	for round, idle := 0, false; round < rounds && !idle; round++ {
		idle = true
		for _, step := range steps {
			edits, err := step(found, tree)
			if err != nil {
				return false, err
			}
			if len(edits) == 0 {
				continue
			}
			idle = false
			if err := c.layer(edits); err != nil {
				return false, err
			}
			if found, tree, err = c.diagnose(); err != nil {
				return false, err
			}
		}
	}
	for _, x := range found {
		if c.wants[x.Code] && len(c.layers) > 0 && c.refused(x.Code, x.ID) == "" {
			c.decline(x.Code, "", fmt.Sprintf("line %d would still be %s afterwards", x.At.Line, x.Code))
			c.wants[x.Code], again = false, true
		}
	}
	for _, x := range found {
		if aboutLinks[x.Code] && !c.met[x.Code] && !again {
			return false, fmt.Errorf("line %d would be %s afterwards, which it is not now", x.At.Line, x.Code)
		}
	}
	if c.left = found; again {
		return true, nil
	}
	after, err := c.heard(tree)
	if err != nil {
		return false, err
	}
	lost := 0
	for m := range before {
		if now, changed := c.became[m]; !after[m] && !(changed && after[now]) {
			lost++
		}
	}
	if lost > 0 {
		return false, fmt.Errorf("%d messages that are in the conversation would not be in it afterwards", lost)
	}
	return false, nil
}

// heard are the messages of the conversation, and those of it that the model
// sees, by their marks and without those of nobody.
func (c *cure) heard(tree *transcript.Tree) (map[uint64]bool, error) {
	branch, _ := tree.Branch()
	load := transcript.Load(c.text)
	out, at := make(map[uint64]bool, len(branch)), make(map[int64]uint64, len(branch))
	for _, place := range branch {
		e, err := load(place)
		if err != nil {
			return nil, err
		}
		if e.Kind == transcript.Message && span.Trim(transcript.Role(e.Message)) != "" {
			at[place.Offset] = markOf(e.ID, e.Message)
			out[at[place.Offset]^inBranch] = true
		}
	}
	seen, err := tree.Context(load)
	if err != nil {
		return nil, err
	}
	for _, s := range seen.Messages {
		if mark, ok := at[s.Offset]; ok {
			out[mark^inContext] = true
		}
	}
	return out, nil
}

// markOf is a hash of a message and the id of its entry: people say the same
// thing twice.
func markOf(id, message []byte) uint64 {
	return maphash.Bytes(seed, id) ^ maphash.Bytes(seed, message)
}

// An edit is what becomes of one line.
type edit struct {
	at     transcript.Place
	brk    int // bytes of the line break behind it
	drop   bool
	raw    []byte // in place of the line; nil: it stays
	behind []byte // further lines, each with its line break
	first  bool   // behind goes before all else
	says   string
}

// layer lays edits over the text.
func (c *cure) layer(edits []edit) error {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at.Offset, b.at.Offset) })
	var splices []maintenance.Splice
	for _, e := range edits {
		end := e.at.Offset + int64(e.at.Size)
		switch {
		case e.first:
			splices = append(splices, maintenance.Splice{At: e.at.Offset, Put: e.behind})
		case e.drop:
			splices = append(splices, maintenance.Splice{At: e.at.Offset, Cut: int64(e.at.Size + e.brk)})
		case e.raw != nil:
			splices = append(splices, maintenance.Splice{At: e.at.Offset, Cut: int64(e.at.Size), Put: e.raw})
		}
		if len(e.behind) > 0 && !e.first {
			put := e.behind
			if e.brk == 0 {
				put = append([]byte("\n"), put...)
			}
			splices = append(splices, maintenance.Splice{At: end + int64(e.brk), Put: put})
		}
		if e.says != "" {
			c.did = append(c.did, e.says)
		}
	}
	s, err := maintenance.NewSpliced(c.text, c.size, splices)
	if err != nil {
		return err
	}
	c.layers = append(c.layers, splices)
	c.text, c.size = s, s.Size()
	return nil
}

// each passes the rows of the text as it is now.
func (c *cure) each(row func(*transcript.Row) error) error {
	var s transcript.Scanner
	return s.Read(io.NewSectionReader(c.text, 0, c.size), row)
}

// lines mends what is wrong with single lines: what cannot be read goes, and
// what hung on a message that nobody can read hangs on what was before it,
// which OpenClaw's own repair forgets.
func (c *cure) lines(found []transcript.Finding, tree *transcript.Tree) (edits []edit, err error) {
	bad := map[int64]transcript.Code{}
	for _, f := range found {
		switch f.Code {
		case transcript.BOM:
			if c.wants[f.Code] {
				edits = append(edits, edit{at: transcript.Place{Size: 3}, drop: true, says: "the byte order mark goes"})
			}
		case transcript.NUL:
			// What hangs on an entry behind NUL bytes is no orphan once they are gone.
			if c.wants[f.Code] || c.wants[transcript.OrphanParent] {
				bad[f.At.Offset] = f.Code
			}
		case transcript.NULTail, transcript.TornTail, transcript.NotJSON, transcript.NotObject, transcript.LateHeader, transcript.NoMessage, transcript.BadRole:
			if c.wants[f.Code] {
				bad[f.At.Offset] = f.Code
			}
		}
	}
	if len(bad) == 0 {
		return edits, nil
	}
	above := map[string]transcript.Ref{} // of rows that go, what they hung on
	if err := c.each(func(r *transcript.Row) error {
		if code := bad[r.Offset]; (code == transcript.NoMessage || code == transcript.BadRole) && r.ID != nil {
			above[string(r.ID)] = parentOf(r)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	err = c.each(func(r *transcript.Row) error {
		e := edit{at: r.Place, brk: r.Break}
		switch bad[r.Offset] {
		case transcript.NULTail:
			e.drop, e.says = true, fmt.Sprintf("the %d NUL bytes at the end go", r.Size)
		case transcript.TornTail:
			e.drop, e.says = true, fmt.Sprintf("line %d, which is cut, goes: %d bytes", r.Line, r.Size)
		case transcript.NUL:
			if rest := bytes.Trim(r.Raw, "\x00"); len(rest) > 0 && span.Valid(rest) == nil {
				e.raw, e.says = slices.Clone(rest), fmt.Sprintf("the %d NUL bytes in line %d go", r.Size-len(rest), r.Line)
			} else if c.wants[transcript.NUL] {
				e.drop, e.says = true, fmt.Sprintf("line %d, of NUL bytes, goes: %d bytes", r.Line, r.Size)
			} else {
				return nil
			}
		case transcript.NotJSON, transcript.NotObject:
			e.drop, e.says = true, fmt.Sprintf("line %d, which is no entry, goes: %d bytes", r.Line, r.Size)
		case transcript.LateHeader:
			e.drop = true
			edits = append(edits, edit{first: true, behind: append(slices.Clone(r.Raw), '\n'), says: fmt.Sprintf("the header moves from line %d to the first", r.Line)})
		case transcript.NoMessage:
			e.drop, e.says = true, fmt.Sprintf("line %d, a message row without a message, goes", r.Line)
		case transcript.BadRole:
			e.drop, e.says = true, fmt.Sprintf("line %d, a message of nobody, goes, as OpenClaw drops it before the next run", r.Line)
		default:
			if r.Blank || r.Err != nil {
				return nil
			}
			raw, says, err := c.relinked(r, above, tree)
			if err != nil || says == "" {
				return err
			}
			e.raw, e.says = raw, says
		}
		edits = append(edits, e)
		return nil
	})
	return edits, err
}

// parentOf is what a row hangs on, with its own bytes.
func parentOf(r *transcript.Row) transcript.Ref {
	p := r.Parent
	p.ID = slices.Clone(p.ID)
	return p
}

// withParent is a row with another parent; all else keeps its bytes.
func withParent(raw []byte, id string, ok bool) []byte {
	val := []byte("null")
	if ok {
		val = span.Quote(nil, id)
	}
	return slices.Clone(row.Edit(raw, row.Change{Name: "parentId", Val: val}))
}

// doubles takes out rows that stand twice with the same bytes. The later one
// goes, unless the conversation would then go on elsewhere.
func (c *cure) doubles(found []transcript.Finding, tree *transcript.Tree) (edits []edit, err error) {
	if !c.wants[transcript.DuplicateSame] {
		return nil, nil
	}
	later, earlier := map[int64]bool{}, map[int64]bool{}
	for _, f := range found {
		if f.Code == transcript.DuplicateSame {
			later[f.At.Offset], earlier[f.Other.Offset] = true, true
		}
	}
	if len(later) == 0 {
		return nil, nil
	}
	before := tree.Messages()
	for _, at := range []map[int64]bool{later, earlier} {
		edits = nil
		if err := c.each(func(r *transcript.Row) error {
			if at[r.Offset] {
				edits = append(edits, edit{at: r.Place, brk: r.Break, drop: true, says: fmt.Sprintf("line %d, which stands there twice, goes once", r.Line)})
			}
			return nil
		}); err != nil {
			return nil, err
		}
		try := *c
		try.layers, try.did = slices.Clone(c.layers), slices.Clone(c.did)
		if err := try.layer(edits); err != nil {
			return nil, err
		}
		_, now, err := try.diagnose()
		if err != nil {
			return nil, err
		}
		if now.Leaf() == tree.Leaf() || now.Messages().Active > before.Active {
			break
		}
	}
	return edits, nil
}

// results gives calls without a result one that says so, in the place where it
// belongs: what came after the call hangs on it.
func (c *cure) results(found []transcript.Finding, tree *transcript.Tree) (edits []edit, err error) {
	open := map[int64]int{} // answers on the branch with open calls
	for _, f := range found {
		if (f.Code == transcript.OpenCall || f.Code == transcript.LostResult) && c.wants[f.Code] {
			open[f.At.Offset]++
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	brk := map[int64]int{}
	if err := c.each(func(r *transcript.Row) error { brk[r.Offset] = r.Break; return nil }); err != nil {
		return nil, err
	}
	branch, _ := tree.Branch()
	load := transcript.Load(c.text)
	done := map[string]bool{} // results on the branch
	rows := make([]transcript.Entry, len(branch))
	for i, at := range branch {
		if rows[i], err = load(at); err != nil {
			return nil, err
		}
		if transcript.Role(rows[i].Message) == "toolResult" {
			done[transcript.ResultID(rows[i].Message)] = true
		}
	}
	for i, at := range branch {
		if open[at.Offset] == 0 {
			continue
		}
		j := i // the last result behind the answer
		for j+1 < len(branch) && transcript.Role(rows[j+1].Message) == "toolResult" {
			j++
		}
		parent := string(rows[j].ID)
		e := edit{at: branch[j], brk: brk[branch[j].Offset]}
		for _, call := range transcript.Calls(rows[i].Message) {
			if call.ID == "" || done[call.ID] {
				continue
			}
			done[call.ID] = true
			line, id := c.noResult(parent, call, rows[i].Stamp)
			e.behind, parent = append(e.behind, line...), id
			e.says = fmt.Sprintf("line %d: the call of %s gets a result that says that there is none", at.Line, call.Name)
		}
		edits = append(edits, e)
		if j+1 < len(branch) {
			next := branch[j+1]
			edits = append(edits, edit{at: next, brk: brk[next.Offset], raw: withParent(rows[j+1].Raw, parent, true)})
		}
	}
	return edits, nil
}

// noResult is the row of a result that never came, as OpenClaw writes it
// (release 2026.7.35, spec/transcript.md 1.9).
func (c *cure) noResult(parent string, call transcript.Call, stamp []byte) (line []byte, id string) {
	sum := sha256.Sum256([]byte(parent + "\n" + call.ID))
	id = "repair-" + hex.EncodeToString(sum[:4])
	at, ok := span.Text(stamp)
	if !ok {
		at = c.now.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	ms := c.now.UnixMilli()
	if when, err := time.Parse(time.RFC3339, at); err == nil {
		ms = when.UnixMilli()
	}
	text := func(s string) string { return string(span.Quote(nil, s)) }
	line = fmt.Appendf(nil, `{"type":"message","id":%s,"parentId":%s,"timestamp":%s,"message":{"role":"toolResult","toolCallId":%s,"toolName":%s,"content":[{"type":"text","text":"aborted"}],"details":{"openclawSyntheticMissingToolResult":true},"isError":true,"timestamp":%d}}`+"\n",
		text(id), text(parent), text(at), text(call.ID), text(call.Name), ms)
	if !json.Valid(line) {
		panic("a result that is no JSON: " + string(line))
	}
	return line, id
}

// transcript notes that a transcript is to be mended.
func (r *repair) transcript(f Finding) error {
	if r.cures == nil {
		r.cures = map[string]*cure{}
	}
	c := r.cures[f.File]
	if c == nil {
		agent := f.Agent
		if m := agentsDir().FindStringSubmatch(filepath.Dir(f.File)); agent == "" && m != nil {
			agent = row.AgentID(m[1])
		}
		c = &cure{
			path: f.File, wants: map[transcript.Code]bool{}, now: r.x.Now,
			session: func() (string, error) { return sessionID(r.s, f.File) }, cwd: workspace(r.x.Config, agent),
		}
		r.cures[f.File] = c
		r.order = append(r.order, f.File)
	}
	c.wants[transcript.Code(f.Code)] = true
	return nil
}

// heal puts the noted transcripts into the plan. What it gives back says of a
// finding why it stays, "" where it does not.
func (r *repair) heal() (stays func(Finding) string) {
	refused := map[string]error{}
	for _, path := range r.order {
		if err := r.replace(r.cures[path]); err != nil {
			refused[path] = err
		}
	}
	return func(f Finding) string {
		if err := refused[f.File]; err != nil {
			return err.Error()
		}
		if c := r.cures[f.File]; c != nil {
			return c.refused(transcript.Code(f.Code), f.Entry)
		}
		return ""
	}
}

func (r *repair) replace(c *cure) error {
	info, err := os.Lstat(c.path)
	if err != nil {
		return err
	}
	if why := r.inUse(c.path, info); why != "" {
		return &InUse{c.path, why}
	}
	f, err := openFile(c.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.work(f, info.Size()); err != nil {
		return err
	}
	if len(c.layers) == 0 {
		return nil
	}
	code := ""
	for _, k := range curable {
		if c.wants[k] && c.met[k] && code == "" {
			code = string(k)
		}
	}
	r.m.Replace(c.path, info, maintenance.SplicedFile(c.path, c.layers...), maintenance.Rule(code), list(c.did))
	return nil
}

// NotTranscript is a file in which nothing is a header or an entry: of another
// kind, or damaged so much that there is nothing to mend.
type NotTranscript struct{ Path string }

func (e *NotTranscript) Error() string {
	return fmt.Sprintf("%s is left as it is: no line of it is a header or an entry of a transcript", e.Path)
}

// InUse is a transcript that is left as it is, because somebody may be writing
// it, or hold it in another way.
type InUse struct{ Path, Why string }

func (e *InUse) Error() string {
	return fmt.Sprintf("%s is left as it is: %s", e.Path, e.Why)
}

// RepairTranscript mends all that oc can mend in one transcript: it is written
// anew beside, with every line that nothing is wrong with as it was, and put in
// its place. Left are the findings that stay. The error in it is an *InUse, or
// says that mending would lose a message.
func RepairTranscript(ctx context.Context, o Options, path string, w *maintenance.Worker, dry bool) Mended {
	home := store.Target{Agent: o.Config.DefaultAgent(), Index: filepath.Join(filepath.Dir(path), config.StoreFile)}
	out := Mended{Store: home.Index}
	policy := maintenance.Alone()
	policy.Beside = true
	plan := func(s *maintenance.Snapshot) (*maintenance.Plan, error) {
		r := &repair{x: newExam(ctx, o), m: maintenance.Mend(s, o.Now)}
		for _, code := range curable {
			if err := r.transcript(Finding{Code: Code(code), Subject: Subject{File: path}}); err != nil {
				return nil, err
			}
		}
		c := r.cures[path]
		c.session = func() (string, error) {
			whole, err := maintenance.Take(ctx, o.Config, home, maintenance.Alone(), o.Machine, o.Now)
			if err != nil { // the name of the file is all there is
				whole = nil
			}
			return sessionID(&site{index: whole}, path)
		}
		if err := r.replace(c); err != nil {
			return nil, err
		}
		out.Left = nil
		for _, f := range c.left {
			k := r.x.checks[Code(f.Code)]
			x := Finding{Code: k.Code, Severity: k.Severity, Subject: Subject{File: path, Line: f.At.Line, Byte: -1, Entry: f.ID}, Remedy: k.Remedy, Command: k.Command}
			why := c.refused(f.Code, f.ID)
			if why == "" {
				why = k.Says
			}
			out.Left = append(out.Left, Left{x, why})
		}
		return r.m.Plan(), ctx.Err()
	}
	if !dry {
		out.Done, out.Err = w.Apply(ctx, home, policy, plan)
		return out
	}
	out.Done = &maintenance.Done{}
	if out.Done.Snapshot, out.Err = maintenance.Take(ctx, o.Config, home, policy, o.Machine, o.Now); out.Err == nil {
		out.Done.Plan, out.Err = plan(out.Done.Snapshot)
	}
	return out
}

// inUse says why a file must be left alone; "" where nobody seems to write it.
func (r *repair) inUse(path string, info os.FileInfo) string {
	switch {
	case !info.Mode().IsRegular():
		return "it is " + jsonfile.KindOf(info.Mode())
	case names(info) > 1:
		return fmt.Sprintf("it has %d names", names(info))
	}
	if l := lock.Look(path+lock.Suffix, r.x.Machine, r.x.Now); l.State.Holds() {
		return "it is locked: " + strings.Join(l.Evidence, "; ")
	}
	if r.x.Now.UnixMilli()-info.ModTime().UnixMilli() < recent {
		return "it was written in the last five minutes"
	}
	return ""
}

// list is what was done, the first few and how many there are.
func list(did []string) string {
	const most = 4
	out := strings.Join(did[:min(len(did), most)], "; ")
	if rest := len(did) - most; rest > 0 {
		out += fmt.Sprintf("; and %d more", rest)
	}
	return out
}
