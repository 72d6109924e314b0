package sqlfile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oc/fixtures"
	"oc/store/sqlfile"
)

func demoDatabase(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := fixtures.Demo().Write(root); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "agents", "main", "agent", "openclaw-agent.sqlite")
}

// What the tables take is all of the file but its free pages, and the header says what the file has.
func TestShapeAddsUp(t *testing.T) {
	path := demoDatabase(t)
	size, log, err := sqlfile.Sizes(path)
	if err != nil || log != 0 {
		t.Fatalf("sizes %d, %d: %v", size, log, err)
	}
	for name, read := range map[string]func(context.Context, string, func(*sqlfile.Tx) error) error{"read": sqlfile.Read, "copy": sqlfile.ReadCopy} {
		err = read(context.Background(), path, func(tx *sqlfile.Tx) error {
			s, err := tx.Shape()
			if err != nil {
				return err
			}
			if s.PageSize != 512 || s.PageSize*s.Pages != size || !s.Ahead || s.Vacuum != "incremental" {
				t.Errorf("%s: shape %+v of %d bytes", name, s, size)
			}
			all, err := tx.Tables()
			if err != nil {
				return err
			}
			total, seen := int64(0), map[string]sqlfile.Table{}
			for _, x := range all {
				total, seen[x.Name] = total+x.Bytes(), x
				if x.Unused > x.Bytes() || x.Unused < 0 {
					t.Errorf("%s: %+v", name, x)
				}
			}
			// With incremental vacuum some pages say where others are: they are no table's.
			if rest := size - total - s.Free*s.PageSize; rest < 0 || rest > size/50 {
				t.Errorf("%s: the tables have %d of %d bytes, %d pages are free", name, total, size, s.Free)
			}
			for _, want := range []string{"session_nodes", "transcript_events", "session_transcript_fts"} {
				if seen[want].Data == 0 {
					t.Errorf("%s: no bytes for %s", name, want)
				}
			}
			if seen["session_transcript_fts_data"].Data != 0 || seen["session_nodes"].Indexes == 0 {
				t.Errorf("%s: %+v", name, all)
			}
			said, err := tx.Check(20)
			if len(said) > 0 {
				t.Errorf("%s: %q", name, said)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside the database: %v %v", entries, err)
	}
}

// A check of a copy says which index does not fit its table, and that of a file without a header is refused as such.
func TestCheckFindsWhatIsWrong(t *testing.T) {
	path := demoDatabase(t)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	err = sqlfile.Read(context.Background(), path, func(tx *sqlfile.Tx) error {
		root, _, err = tx.Int("SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_session_windows_1'")
		return err
	})
	if err != nil || root == 0 {
		t.Fatalf("root %d: %v", root, err)
	}
	for i := (root-1)*512 + 100; i < root*512; i++ {
		raw[i] = 0xff
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	err = sqlfile.ReadCopy(context.Background(), path, func(tx *sqlfile.Tx) (err error) {
		said, err = tx.Check(20)
		return err
	})
	if err != nil || len(said) == 0 || !strings.Contains(strings.Join(said, "\n"), "session_windows") {
		t.Errorf("said %q: %v", said, err)
	}
}

// What a copy takes is said beforehand, and the directory is where it can be made.
func TestCopyRoom(t *testing.T) {
	path := demoDatabase(t)
	if err := os.WriteFile(path+"-wal", make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	size, log, err := sqlfile.Sizes(path)
	if err != nil || log != 4096 {
		t.Fatal(size, log, err)
	}
	dir, bytes, err := sqlfile.CopyRoom(path)
	if err != nil || bytes != size+4096 || dir == "" {
		t.Errorf("%s %d %v", dir, bytes, err)
	}
	if _, _, err := sqlfile.CopyRoom(path + ".none"); !os.IsNotExist(err) && err == nil {
		t.Errorf("of nothing: %v", err)
	}
}
