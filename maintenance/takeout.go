package maintenance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"oc/config"
	"oc/store/agentdb"
	"oc/store/jsonfile"
	"oc/store/row"
	"oc/store/span"
)

// A Takeout is what was taken out of a database as files.
type Takeout struct {
	Dir          string
	Sessions     int
	Transcripts  int // files of current transcripts
	Earlier      int // files of what resets and expiries left behind, and of sessions that were removed
	Archives     int // files of archived transcripts
	Trajectories int
	Bytes        int64
	Resets       int           // transcripts with marks of a reset, which releases of the file era do not know
	Skipped      []row.Skipped // rows that OpenClaw does not read, and why
	Problems     []error       // what could not be taken out, or not whole; the rest was
}

// A takeout while it is made.
type takeout struct {
	*Takeout
	ctx  context.Context
	path string // of the database
	temp string
	done map[string]bool // session ids and names
}

// TakeOut writes the sessions of the database at path into dir, which must not exist, as releases of the file era keep
// them: sessions.json, one file of JSON lines a transcript, what resets and expiries left behind as .reset archives, what
// was removed as .deleted archives (spec/sqlite-store.md 5.6, release 2026.7.35). Cold and archived transcripts are
// unpacked. dir appears when it is whole. What cannot be read is among the Problems.
func TakeOut(ctx context.Context, path, dir string) (_ *Takeout, err error) {
	parent := filepath.Dir(dir)
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".oc-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	x := &takeout{Takeout: &Takeout{Dir: dir}, ctx: ctx, path: path, temp: temp, done: map[string]bool{}}
	if err := x.all(); err != nil {
		return nil, err
	}
	if err := x.verify(); err != nil {
		return nil, err
	}
	if err := os.Rename(temp, dir); err != nil { // it refuses to replace a directory
		return nil, err
	}
	return x.Takeout, nil
}

func (x *takeout) all() error {
	var l *agentdb.Listing
	var windows []agentdb.Window
	var archives []agentdb.Archive
	err := agentdb.Read(x.ctx, x.path, func(db *agentdb.DB) (err error) {
		if l, err = db.List(agentdb.Options{Whole: true}); err != nil {
			return err
		}
		if windows, err = db.Transcripts(); err != nil {
			return err
		}
		_, archives, err = db.Filed()
		return err
	})
	if err != nil {
		return err
	}
	x.Skipped = l.Skipped
	if err := x.store(l.Rows); err != nil {
		return err
	}
	listed := map[string]bool{}
	current := map[string]bool{}
	for i := range l.Rows {
		listed[l.Rows[i].Key] = true
		current[l.Rows[i].Columns.SessionID] = true
	}
	for _, w := range windows {
		at := max(w.UpdatedAt, w.CreatedAt, w.TranscriptAt)
		switch {
		case current[w.SessionID]:
			err = x.transcript(w.SessionID, w.SessionID+".jsonl", at, &x.Transcripts)
		case w.Current && !listed[w.Key]: // of a row that cannot be read
			err = x.transcript(w.SessionID, w.SessionID+".jsonl", at, &x.Transcripts)
		case listed[w.Key]:
			err = x.transcript(w.SessionID, w.SessionID+".jsonl.reset."+stamp(at), at, &x.Earlier)
		default:
			err = x.transcript(w.SessionID, w.SessionID+".jsonl.deleted."+stamp(at), at, &x.Earlier)
		}
		if err != nil {
			return err
		}
	}
	for _, a := range archives {
		if err := x.archive(a); err != nil {
			return err
		}
	}
	return nil
}

// stamp is a time as the names of archives have it.
func stamp(ms int64) string {
	return strings.ReplaceAll(time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"), ":", "-")
}

// store writes sessions.json.
func (x *takeout) store(rows []agentdb.Row) error {
	return x.file(config.StoreFile, 0, func(w *bufio.Writer) error {
		sep := "{\n  "
		var line []byte
		for i := range rows {
			r := &rows[i]
			line = append(span.Quote(append(line[:0], sep...), r.Key), ": "...)
			line = span.AppendValue(line, r.FileForm(), 1)
			sep = ",\n  "
			if _, err := w.Write(line); err != nil {
				return err
			}
			x.Sessions++
		}
		end := "\n}"
		if len(rows) == 0 {
			end = "{}"
		}
		_, err := w.WriteString(end)
		return err
	})
}

// transcript writes the events of a window, and what its runs left beside it.
func (x *takeout) transcript(id, name string, at int64, count *int) error {
	if x.done[id] {
		return nil
	}
	x.done[id] = true
	if !row.IsTranscriptID(id) {
		x.Problems = append(x.Problems, fmt.Errorf("the transcript of session %q: its id is no name of a file", id))
		return nil
	}
	var events, damaged, runs int
	reset := false
	var trajectory [][]byte
	err := x.file(name, at, func(w *bufio.Writer) error {
		err := agentdb.Events(x.ctx, x.path, id, func(e agentdb.Event) error {
			if e.Damage != nil {
				damaged++
				return nil
			}
			events++
			if kind, _ := span.Text(span.Member(e.Line, "type")); kind == "reset" {
				reset = true
			}
			_, err := w.Write(e.Line)
			return errors.Join(err, w.WriteByte('\n'))
		})
		if err != nil {
			return err
		}
		return agentdb.Read(x.ctx, x.path, func(db *agentdb.DB) error {
			trajectory = nil
			return db.Trajectory(id, -1, 0, func(e agentdb.Event) error {
				trajectory = append(trajectory, e.Line)
				return nil
			})
		})
	})
	var cold *agentdb.ColdError
	if errors.As(err, &cold) {
		x.Problems = append(x.Problems, cold)
		return os.Remove(filepath.Join(x.temp, name))
	}
	if err != nil {
		return err
	}
	if damaged > 0 {
		x.Problems = append(x.Problems, fmt.Errorf("the transcript of session %s lacks %d events that cannot be read", id, damaged))
	}
	if runs = len(trajectory); events == 0 && runs == 0 { // a session without a transcript has no file
		return os.Remove(filepath.Join(x.temp, name))
	}
	*count++
	if reset {
		x.Resets++
	}
	if runs == 0 {
		return nil
	}
	x.Trajectories++
	return x.file(id+".trajectory.jsonl", at, func(w *bufio.Writer) error {
		for _, line := range trajectory {
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
}

// archive writes an archived transcript under the name that it has in the file era.
func (x *takeout) archive(a agentdb.Archive) error {
	n := jsonfile.NameOf(a.Name, "")
	if n.Class != jsonfile.Archive || n.Session == "" || filepath.Base(a.Name) != a.Name {
		x.Problems = append(x.Problems, fmt.Errorf("the archive %q: its name is none of an archive", a.Name))
		return nil
	}
	name := fmt.Sprintf("%s.jsonl.%s.%s", n.Session, n.Reason, stamp(n.At.UnixMilli()))
	if x.done[name] {
		x.Problems = append(x.Problems, fmt.Errorf("the archive %s: another one has its time", a.Name))
		return nil
	}
	x.done[name] = true
	blob, err := x.archived(a)
	if err != nil {
		x.Problems = append(x.Problems, err)
		return nil
	}
	defer blob.Close()
	err = x.file(name, n.At.UnixMilli(), func(w *bufio.Writer) error {
		_, err := io.Copy(w, blob)
		return err
	})
	if errors.Is(err, zstd.ErrMagicMismatch) || errors.Is(err, zstd.ErrCRCMismatch) || errors.Is(err, io.ErrUnexpectedEOF) {
		x.Problems = append(x.Problems, fmt.Errorf("the archive %s does not decompress: %w", a.Name, err))
		return os.Remove(filepath.Join(x.temp, name))
	}
	if err == nil {
		x.Archives++
	}
	return err
}

// archived opens an archive: the bytes of the database, else the file that was published from them.
func (x *takeout) archived(a agentdb.Archive) (io.ReadCloser, error) {
	var in io.Reader
	end := func() {}
	if a.Bytes > 0 {
		var blob []byte
		err := agentdb.Read(x.ctx, x.path, func(db *agentdb.DB) (err error) {
			blob, err = db.ArchiveBytes(a.SessionID, a.Name)
			return err
		})
		if err != nil {
			return nil, err
		}
		in = strings.NewReader(string(blob))
	} else {
		f, err := os.Open(filepath.Join(config.ArtifactDir(x.path), a.Name))
		if err != nil {
			return nil, fmt.Errorf("the archive %s is not in the database, and its file cannot be read: %w", a.Name, err)
		}
		in, end = f, func() { f.Close() }
	}
	if !strings.HasSuffix(a.Name, ".zst") {
		return closing{in, end}, nil
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		end()
		return nil, err
	}
	return closing{z, func() { z.Close(); end() }}, nil
}

type closing struct {
	io.Reader
	end func()
}

func (c closing) Close() error { c.end(); return nil }

// file writes one file durably, with the time that it would have.
func (x *takeout) file(name string, at int64, write func(w *bufio.Writer) error) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	path := filepath.Join(x.temp, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	err = write(w)
	if err == nil {
		err = errors.Join(w.Flush(), f.Sync())
	}
	if info, e := f.Stat(); e == nil && err == nil {
		x.Bytes += info.Size()
	}
	if err = errors.Join(err, f.Close()); err == nil && at > 0 {
		err = os.Chtimes(path, time.UnixMilli(at), time.UnixMilli(at))
	}
	return err
}

// verify reads back what was written.
func (x *takeout) verify() error {
	f, err := jsonfile.Read(filepath.Join(x.temp, config.StoreFile))
	if err != nil {
		return err
	}
	if len(f.Entries) != x.Sessions || len(f.Skipped) > 0 {
		return fmt.Errorf("%s: read back it has %d sessions, not %d", filepath.Join(x.temp, config.StoreFile), len(f.Entries), x.Sessions)
	}
	return nil
}
