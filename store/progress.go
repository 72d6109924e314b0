package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/span"
	"oc/transcript"
	"oc/transcript/visible"
)

// A Step is one thing that happened in a session, without what was said in it:
// no prompt, no argument, no result.
type Step struct {
	Key  string
	ID   string // session id
	Time int64  // epoch ms; 0 if it is not known
	Kind string // "user", "answer", "call", "result", "compaction" ..., or the type of a trajectory's event: "session.started"
	Name string // of the tool, or provider/model
	Note string // how it went: "ok", "failed", "toolUse", "42 tokens"

	Trajectory bool // it is from a trajectory, not from the transcript
}

// A Progress gives the steps of one session as they are written. It keeps no
// file open between two looks.
type Progress struct {
	Row *Row
	Bad int // rows that are no steps because they cannot be read

	files []*grown // the transcript and the trajectories, in the file era
	seqs  [2]int64 // last numbers seen of the same, in the other
	was   string   // how the database's files looked
	begun bool
}

// Progress follows a session.
func (r *Row) Progress() *Progress {
	p := &Progress{Row: r, seqs: [2]int64{-1, -1}}
	if r.sessions.Era == FileEra {
		at, _, _ := r.Transcript()
		p.files = []*grown{{path: at.Path}}
		for _, path := range r.trajectories(at.Path) {
			p.files = append(p.files, &grown{path: path, trajectory: true})
		}
	}
	return p
}

// Paths are the files that grow as the session goes on.
func (p *Progress) Paths() (paths []string) {
	for _, f := range p.files {
		paths = append(paths, f.path)
	}
	if p.files == nil {
		paths = append(paths, p.Row.sessions.Path, p.Row.sessions.Path+"-wal")
	}
	return paths
}

// trajectories are where the runs of a session write what they do
// (spec/file-store.md 4.5): in OPENCLAW_TRAJECTORY_DIR, where the pointer beside
// its transcript says, and beside the transcript. The pointer is believed only
// where it names a trajectory of this session; a run whose environment was
// another one than oc's has left its own.
func (r *Row) trajectories(path string) (paths []string) {
	stem := strings.TrimSuffix(path, ".jsonl")
	beside := stem + ".trajectory.jsonl"
	if dir := r.sessions.config.TrajectoryDir(); dir != "" && r.ID() != "" {
		paths = append(paths, filepath.Join(dir, jsonfile.TrajectoryName(r.ID())))
	}
	if to := r.pointed(stem+".trajectory-path.json", path, beside); to != "" && !slices.Contains(paths, to) {
		paths = append(paths, to)
	}
	if !slices.Contains(paths, beside) {
		paths = append(paths, beside)
	}
	return paths
}

// pointed is the trajectory that a pointer names; "" where it names none of the
// row's.
func (r *Row) pointed(pointer, path, beside string) string {
	if info, err := os.Lstat(pointer); err != nil || !info.Mode().IsRegular() || info.Size() > 64<<10 {
		return ""
	}
	raw, err := os.ReadFile(pointer)
	if err != nil || span.Valid(raw) != nil {
		return ""
	}
	id, _ := span.Text(span.Member(raw, "sessionId"))
	to, _ := span.Text(span.Member(raw, "runtimeFile"))
	base := filepath.Base(to)
	if id != r.ID() || !filepath.IsAbs(to) || base != filepath.Base(beside) && base != jsonfile.TrajectoryName(id) && base != id+".jsonl" || filepath.Clean(to) == filepath.Clean(path) {
		return ""
	}
	if info, err := os.Lstat(to); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return filepath.Clean(to)
}

// Next are the steps since the last look, at the first one the newest limit of
// them, in the order of time.
func (p *Progress) Next(ctx context.Context, limit int) ([]Step, error) {
	var steps []Step
	var err error
	if p.files == nil {
		steps, err = p.fromDatabase(ctx, limit)
	} else {
		for _, f := range p.files {
			var more []Step
			if more, err = p.fromFile(f, limit); err != nil {
				break
			}
			steps = append(steps, more...)
		}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return int(min(1, max(-1, a.Time-b.Time))) })
	if n := len(steps) - limit; !p.begun && n > 0 {
		steps = steps[n:]
	}
	p.begun = p.begun || err == nil
	return steps, err
}

func (p *Progress) fromDatabase(ctx context.Context, limit int) (steps []Step, err error) {
	now := Look(p.Paths()...)
	if p.begun && now == p.was {
		return nil, nil
	}
	if p.begun {
		limit = 0
	}
	seqs, bad := p.seqs, 0
	err = agentdb.Read(ctx, p.Row.sessions.Path, func(db *agentdb.DB) error {
		steps, seqs, bad = nil, p.seqs, 0
		read := func(n int, trajectory bool) func(agentdb.Event) error {
			return func(e agentdb.Event) error {
				seqs[n] = e.Seq
				more, ok := p.steps(e.Line, trajectory)
				if e.Damage != nil || !ok {
					bad++
				}
				for i := range more {
					if more[i].Time == 0 {
						more[i].Time = e.CreatedAt
					}
				}
				steps = append(steps, more...)
				return nil
			}
		}
		if err := db.Since(p.Row.Columns.SessionID, p.seqs[0], limit, read(0, false)); err != nil {
			return err
		}
		return db.Trajectory(p.Row.Columns.SessionID, p.seqs[1], limit, read(1, true))
	})
	if err != nil {
		return nil, err
	}
	p.seqs, p.Bad, p.was = seqs, p.Bad+bad, now
	return steps, nil
}

// Look is how files look from outside: another text means that something was
// written. Files that are not there count too.
func Look(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%d %d;", info.Size(), info.ModTime().UnixNano())
		} else {
			b.WriteString("-;")
		}
	}
	return b.String()
}

// grown is a file of lines that is only added to, mostly.
type grown struct {
	path       string
	trajectory bool
	info       os.FileInfo // of the last look; nil before
	at         int64       // everything before was read
	skip       bool        // up to the next line break
	last       int64       // time of the last step, epoch ms
}

const (
	firstLook = 1 << 20  // bytes from the end, doubled until there are enough steps
	widest    = 16 << 20 // and no more
	longEvent = 8 << 20  // a line above this is passed over
)

func (p *Progress) fromFile(f *grown, limit int) ([]Step, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		f.info, f.at, f.skip = nil, 0, false
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		f.info, f.at, f.skip = nil, 0, false
		return nil, fmt.Errorf("%s is no plain file; it is not read", f.path)
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size := info.Size()
	before := f.info
	f.info = info
	switch {
	case before == nil && !p.begun && !f.trajectory:
		return p.firstRows(f, file, size, limit)
	case before == nil && !p.begun:
		for look := int64(firstLook); ; look *= 2 {
			from := max(0, size-look)
			f.at, f.skip = from, from > 0
			steps, bad, err := p.lines(f, file, size)
			if err != nil || len(steps) >= limit || from == 0 || look >= widest {
				p.Bad += bad
				f.notice(steps)
				return steps, err
			}
		}
	case before == nil, !os.SameFile(before, info), size < f.at:
		// Another file, or one that was written anew: what is older than the last step is known.
		last := f.last
		f.at, f.skip = 0, false
		steps, bad, err := p.lines(f, file, size)
		p.Bad += bad
		steps = slices.DeleteFunc(steps, func(s Step) bool { return s.Time <= last })
		f.notice(steps)
		return steps, err
	case size == f.at:
		return nil, nil
	}
	steps, bad, err := p.lines(f, file, size)
	p.Bad += bad
	f.notice(steps)
	return steps, err
}

// firstRows are the steps at the end of a transcript, however long its rows are.
func (p *Progress) firstRows(f *grown, file *os.File, size int64, limit int) (steps []Step, err error) {
	t, err := transcript.ReadTail(file, size, transcript.TailLimits{Messages: max(1, limit)})
	if err != nil {
		return nil, err
	}
	f.at = size
	p.Bad += t.Bad
	if t.Torn && len(t.Broken) > 0 { // it may be whole at the next look
		f.at = t.Broken[0].Offset
		p.Bad--
	}
	for i := range t.Rows {
		steps = append(steps, p.rowSteps(&t.Rows[i].Entry)...)
	}
	f.notice(steps)
	return steps, nil
}

func (f *grown) notice(steps []Step) {
	for i := range steps {
		f.last = max(f.last, steps[i].Time)
	}
}

// lines reads the whole lines between f.at and size. A line that has not come
// to its end is left for the next look.
func (p *Progress) lines(f *grown, file *os.File, size int64) (steps []Step, bad int, err error) {
	var line []byte
	buf := make([]byte, 64<<10)
	start := f.at // of the line
	for at := f.at; at < size; {
		n, err := file.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		for piece := buf[:n]; len(piece) > 0; {
			nl := bytes.IndexByte(piece, '\n')
			if nl < 0 {
				if !f.skip {
					line = append(line, piece...)
				}
				if len(line) > longEvent {
					line, f.skip = nil, true
				}
				break
			}
			if !f.skip {
				line = append(line, piece[:nl]...)
				more, ok := p.steps(line, f.trajectory)
				if !ok {
					bad++
				}
				steps = append(steps, more...)
			}
			line, f.skip = line[:0], false
			start = at + int64(n-len(piece)+nl) + 1
			piece = piece[nl+1:]
		}
		at += int64(n)
		if f.skip {
			start = at
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return steps, bad, err
		}
		if n == 0 {
			break
		}
	}
	f.at = start
	return steps, bad, nil
}

// steps are what a line tells; ok is false for one that cannot be read.
func (p *Progress) steps(line []byte, trajectory bool) (list []Step, ok bool) {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil, true
	}
	id := p.Row.ID()
	if trajectory {
		if span.KindOf(line) != span.Object || span.Valid(line) != nil {
			return nil, false
		}
		if s, told := event(line); told {
			s.Key, s.ID, s.Trajectory, s.Name, s.Note = p.Row.Key, id, true, short(s.Name), short(s.Note)
			list = append(list, s)
		}
		return list, true
	}
	e, err := transcript.Parse(line)
	if err != nil {
		return nil, false
	}
	return p.rowSteps(&e), true
}

func (p *Progress) rowSteps(e *transcript.Entry) []Step {
	list := rowSteps(e)
	ms, _ := e.Time()
	for i := range list {
		s := &list[i]
		s.Key, s.ID, s.Time, s.Name, s.Note = p.Row.Key, p.Row.ID(), ms, short(s.Name), short(s.Note)
	}
	return list
}

// rowSteps are the steps of a row of a transcript.
func rowSteps(e *transcript.Entry) (list []Step) {
	switch e.Kind {
	case transcript.Message:
	case transcript.Compaction, transcript.Reset, transcript.ModelChange, transcript.BranchSummary:
		s := Step{Kind: e.Kind.String()}
		if e.Kind == transcript.ModelChange {
			provider, _ := span.Text(span.Member(e.Raw, "provider"))
			model, _ := span.Text(span.Member(e.Raw, "modelId"))
			s.Name = modelName(provider, model)
		}
		return append(list, s)
	default:
		return nil
	}
	text := func(name string) string { s, _ := span.Text(span.Member(e.Message, name)); return s }
	switch role := transcript.Role(e.Message); role {
	case "user":
		list = append(list, Step{Kind: "user"})
	case "assistant":
		a, _ := transcript.ReadAnswer(e)
		s := Step{Kind: "answer", Name: modelName(text("provider"), text("model")), Note: text("stopReason")}
		if n := a.Usage.Output; a.HasUsage && n.Known {
			if s.Note != "" {
				s.Note += ", "
			}
			s.Note += string(span.AppendFloat(nil, n.N)) + " tokens"
		}
		list = append(list, s)
		for _, call := range transcript.Calls(e.Message) {
			list = append(list, Step{Kind: "call", Name: call.Name})
		}
	case "toolResult", "tool":
		s := Step{Kind: "result", Name: text("toolName"), Note: "ok"}
		if string(span.Member(e.Message, "isError")) == "true" {
			s.Note = "failed"
		}
		list = append(list, s)
	case "bashExecution":
		s := Step{Kind: "result", Name: "bash"}
		if code := span.Member(e.Message, "exitCode"); span.KindOf(code) == span.Number {
			s.Note = "exit " + string(code)
		}
		list = append(list, s)
	default:
		list = append(list, Step{Kind: role})
	}
	return list
}

// short is a name or an outcome as a step has it: masked and cut, since it comes
// from whoever wrote the row.
func short(s string) string {
	s, _ = visible.Cut(visible.ShowLine(s), 80)
	return s
}

func modelName(provider, model string) string {
	if provider != "" && model != "" {
		return provider + "/" + model
	}
	return provider + model
}

// event is the step of a row of a trajectory (release 2026.7.35, schema
// openclaw-trajectory, version 1). Of its data only names and outcomes are
// told.
func event(line []byte) (s Step, ok bool) {
	if schema, _ := span.Text(span.Member(line, "traceSchema")); schema != "openclaw-trajectory" {
		return s, false
	}
	data := span.Member(line, "data")
	text := func(names ...string) string {
		for _, name := range names {
			if t, ok := span.Text(span.Member(data, name)); ok && strings.TrimSpace(t) != "" {
				return strings.TrimSpace(t)
			}
		}
		return ""
	}
	is := func(name string) bool { return string(span.Member(data, name)) == "true" }
	s.Kind, _ = span.Text(span.Member(line, "type"))
	stamp, _ := span.Text(span.Member(line, "ts"))
	if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
		s.Time = at.UnixMilli()
	}
	switch s.Kind {
	case "":
		return s, false
	case "tool.call", "tool.timeout":
		s.Name = text("name", "toolName")
	case "tool.result":
		s.Name = text("name", "toolName")
		switch success := string(span.Member(data, "success")); {
		case success == "true":
			s.Note = "ok"
		case success == "false" || is("isError"):
			s.Note = "failed"
		default:
			s.Note = text("status")
		}
	case "model.completed":
		provider, _ := span.Text(span.Member(line, "provider"))
		model, _ := span.Text(span.Member(line, "modelId"))
		s.Name = modelName(strings.TrimSpace(provider), strings.TrimSpace(model))
		switch {
		case is("timedOut"):
			s.Note = "timed out"
		case is("aborted"):
			s.Note = "aborted"
		case text("promptError") != "":
			s.Note = "failed"
		default:
			s.Note = "done"
		}
	case "prompt.skipped":
		s.Note = text("reason")
	default:
		s.Note = text("status")
	}
	return s, true
}
