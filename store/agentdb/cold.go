package agentdb

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"oc/store/lazy"

	"github.com/klauspost/compress/zstd"

	"oc/store/span"
	"oc/store/sqlfile"
)

// ColdError is a cold archive that cannot be read. Its transcript is not empty: it is not there.
type ColdError struct {
	SessionID string
	Path      string // of the archive; the database where the bytes are kept in it
	Err       error
}

func (e *ColdError) Error() string {
	return fmt.Sprintf("the transcript of session %s was moved to the cold archive %s, which cannot be read: %v; restore that file from a backup", e.SessionID, e.Path, e.Err)
}

func (e *ColdError) Unwrap() error { return e.Err }

var coldName = lazy.Regexp(`^[a-f0-9]{64}\.jsonl\.zst$`)

// ArtifactDir is where the files beside the database at path lie: the sibling folder sessions of a folder agent, else
// the folder of the database (spec/sqlite-store.md 1.4).
func ArtifactDir(path string) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) == "agent" {
		return filepath.Join(filepath.Dir(dir), "sessions")
	}
	return dir
}

// coldEvents checks the archive's length and sum, and then reads its events.
func (db *DB) coldEvents(c *Cold, f func(Event) error) error {
	fail := func(where string, err error) error { return &ColdError{c.SessionID, where, err} }
	if c.InDatabase {
		var blob []byte
		err := db.tx.Each("SELECT archive_blob FROM session_transcript_cold_archives WHERE session_id = ?1", func(r *sqlfile.Row) error {
			blob = r.Bytes(0)
			return nil
		}, c.SessionID)
		if err != nil {
			return err
		}
		if err := c.read(bytes.NewReader(blob), f); err != nil {
			return coldOr(err, func(err error) error { return fail(db.path, err) })
		}
		return nil
	}
	path := filepath.Join(ArtifactDir(db.path), "cold", c.Name)
	if !coldName().MatchString(c.Name) {
		return fail(path, errors.New("its name is not one of a cold archive"))
	}
	file, err := os.Open(path)
	if err != nil {
		return fail(path, err)
	}
	defer file.Close()
	if err := c.read(file, f); err != nil {
		return coldOr(err, func(err error) error { return fail(path, err) })
	}
	return nil
}

// An asked is an error of the caller's function: it is not the archive's.
type asked struct{ error }

func coldOr(err error, wrap func(error) error) error {
	var a asked
	if errors.As(err, &a) {
		return a.error
	}
	return wrap(err)
}

func (c *Cold) read(r io.ReadSeeker, f func(Event) error) error {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil {
		return err
	}
	if n != c.Bytes || hex.EncodeToString(sum.Sum(nil)) != c.SHA256 {
		return errors.New("its bytes are not those that were archived")
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return err
	}
	defer z.Close()
	lines := bufio.NewReaderSize(z, 64<<10)
	events := int64(0)
	for {
		line, err := readLine(lines)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if kind, _ := span.Text(span.Member(line, "kind")); kind != "event" {
			continue
		}
		row := span.Member(line, "row")
		seq, _ := span.Int(span.Member(row, "seq"))
		at, _ := span.Int(span.Member(row, "created_at"))
		e := Event{Seq: seq, CreatedAt: at}
		if text, ok := span.Text(span.Member(row, "event_json")); ok {
			e.Line = []byte(text)
		} else {
			e.Damage = errors.New("the row is empty")
		}
		events++
		if err := f(e); err != nil {
			return asked{err}
		}
	}
	if events != c.Events {
		return fmt.Errorf("it holds %d events, not %d", events, c.Events)
	}
	return nil
}

// readLine is the next line without its break; io.EOF behind the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(line) > 0:
			return line, nil
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(line, []byte{'\n'}), nil
	}
}
