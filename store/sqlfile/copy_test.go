package sqlfile

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// logAlone is a database whose log has no -shm, in a directory of its own; the temporary directory is another one.
func logAlone(t *testing.T) (path, tmp string) {
	t.Helper()
	path, tmp = filepath.Join(t.TempDir(), "db.sqlite"), t.TempDir()
	run(t, "crash", path)
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	t.Cleanup(func() { dropCopies() })
	return path, tmp
}

func rowsOf(path string) (n int64, cost Cost, err error) {
	err = Read(context.Background(), path, func(tx *Tx) error {
		cost = tx.Cost()
		n, _, err = tx.Int("SELECT count(*) FROM t")
		return err
	})
	return n, cost, err
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

// A side file that is none is named, not the database, which is one.
func TestSideFileThatIsNoFile(t *testing.T) {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		for kind, put := range map[string]func(string) error{
			"directory": func(p string) error { return os.Mkdir(p, 0o700) },
			"fifo":      func(p string) error { return mkfifo(p) },
		} {
			path := filepath.Join(t.TempDir(), "db.sqlite")
			run(t, "closed", path)
			if err := put(path + suffix); err != nil {
				t.Fatal(err)
			}
			_, _, err := rowsOf(path)
			if err == nil || err.Error() != "read "+path+suffix+": not a regular file" {
				t.Errorf("%s as a %s: %v", suffix, kind, err)
			}
			if err = Write(context.Background(), path, 0, func(*Tx) error { return nil }); err == nil || !strings.Contains(err.Error(), path+suffix+": ") {
				t.Errorf("%s as a %s, written: %v", suffix, kind, err)
			}
		}
	}
}

// Where no copy can be made the database is still there: the error names the place, why, and what to do.
func TestNoPlaceForACopy(t *testing.T) {
	path, tmp := logAlone(t)
	file := filepath.Join(tmp, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, why string }{
		{filepath.Join(tmp, "missing"), "no such file or directory"},
		{file, "not a directory"},
	} {
		t.Setenv("TMPDIR", c.dir)
		_, _, err := rowsOf(path)
		if !errors.Is(err, ErrNoRoom) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", c.dir, err)
		}
		for _, word := range []string{path, c.dir, c.why, "set TMPDIR to a directory with room for 1 MB"} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s is not in: %v", word, err)
			}
		}
	}
	// What fails on the way is the place's affair too.
	was, err := look(path)
	if err != nil {
		t.Fatal(err)
	}
	err = copyFiles(context.Background(), was, filepath.Join(tmp, "gone", copyName), path, &Cost{})
	if !errors.Is(err, ErrNoRoom) || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A full disk: copies that are kept make way, and then it is said.
func TestKeptCopiesMakeWay(t *testing.T) {
	path, tmp := logAlone(t)
	if _, _, err := rowsOf(path); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.sqlite")
	run(t, "crash", other)
	if err := os.Remove(other + "-shm"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(tmp, "missing"))
	if _, _, err := rowsOf(other); !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
	if len(kept) != 0 {
		t.Errorf("%d copies are still kept", len(kept))
	}
}

// countdown is canceled after it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever a read is canceled, its error is the context's and nothing else.
func TestCanceledAnywhere(t *testing.T) {
	path, tmp := logAlone(t)
	finished := false
	for n := 0; !finished; n++ {
		if n > 200 {
			t.Fatal("it never finishes")
		}
		err := Read(&countdown{context.Background(), n}, path, func(tx *Tx) error {
			_, _, err := tx.Int("SELECT count(*) FROM t")
			return err
		})
		switch {
		case err == nil:
			finished = n > 4
		case err != context.Canceled:
			t.Errorf("after %d looks: %v", n, err)
		}
		if left := names(t, tmp); left != "" {
			t.Errorf("after %d looks: left %s", n, left)
		}
		dropCopies()
	}
}

// One that is canceled does not wait, nor tells of a lock.
func TestCanceledWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	run(t, "closed", path)
	start(t, "hold", path, "WAL")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := Write(ctx, path, 200*time.Millisecond, func(*Tx) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	done, cancel := context.WithCancel(context.Background())
	if err := Read(done, path, func(*Tx) error { cancel(); return errMoved }); err != context.Canceled {
		t.Error(err)
	}
}

// A copy serves all reads of the same files, also one within another, and none of changed ones.
func TestCopyIsKept(t *testing.T) {
	path, tmp := logAlone(t)
	read := func(rows int64, copied bool) {
		t.Helper()
		n, cost, err := rowsOf(path)
		if err != nil || n != rows || cost.Copied > 0 != copied {
			t.Errorf("%d rows, %+v: %v", n, cost, err)
		}
		if left := names(t, tmp); left != "" {
			t.Errorf("left %s", left)
		}
	}
	read(3, true)
	read(3, false)
	mine := errors.New("mine")
	if err := Read(context.Background(), path, func(tx *Tx) error {
		if tx.Cost().Copied > 0 || tx.Mode() != PrivateCopy {
			t.Errorf("%v %+v", tx.Mode(), tx.Cost())
		}
		read(3, true) // the other one is in use
		return mine
	}); err != mine {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := Read(ctx, path, func(tx *Tx) error {
		cancel()
		_, _, err := tx.Int("SELECT count(*) FROM t")
		return err
	}); err != context.Canceled {
		t.Error(err)
	}
	read(3, false)
	if len(kept) != 2 {
		t.Errorf("%d copies are kept", len(kept))
	}

	run(t, "crash", path) // three more rows
	if err := os.Remove(path + "-shm"); err != nil {
		t.Fatal(err)
	}
	read(6, true)
	read(6, false)
	if len(kept) != 1 {
		t.Errorf("%d copies are kept", len(kept))
	}
	func() {
		defer func() { recover() }()
		Read(context.Background(), path, func(*Tx) error { panic(mine) })
	}()
	if len(kept) != 0 {
		t.Error("a copy was kept through a panic")
	}
	read(6, true)
	dropCopy(kept[0])
	read(6, true)
	for range 2 * maxKept {
		was, _ := look(path)
		tx, err := makeCopy(context.Background(), was, path, &Cost{})
		if err != nil {
			t.Fatal(err)
		}
		keepCopy(was, tx)
	}
	if len(kept) != maxKept {
		t.Errorf("%d copies are kept", len(kept))
	}
}

// The copy of a killed process goes with the next one; that of a living one, and what only looks like one, stays.
func TestLeftoversAreSwept(t *testing.T) {
	path, tmp := logAlone(t)
	stop := start(t, "copying", path)
	alive := names(t, tmp)
	for _, name := range []string{"oc-read-", "oc-read-mine", "oc-read-77", "oc-read-88"} {
		if err := os.Mkdir(filepath.Join(tmp, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(tmp, "oc-read-88", "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(path), filepath.Join(tmp, "oc-read-99")); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []os.Signal{syscall.SIGKILL, syscall.SIGHUP} {
		cmd := exec.Command(os.Args[0], path)
		cmd.Env = append(os.Environ(), childEnv+"=copying")
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewReader(out).ReadString('\n')
		cmd.Process.Signal(signal)
		cmd.Wait()
		in.Close()
		if len(strings.Fields(names(t, tmp))) < 5 {
			t.Fatalf("nothing is left: %s", names(t, tmp))
		}
		if _, _, err := rowsOf(path); err != nil {
			t.Error(err)
		}
		dropCopies()
		if left := names(t, tmp); left != strings.Join(sorted(alive, "oc-read-", "oc-read-88", "oc-read-99", "oc-read-mine"), " ") {
			t.Errorf("left %s", left)
		}
	}
	stop()
	if left := names(t, tmp); strings.Contains(left, alive) {
		t.Errorf("left %s", left)
	}
}

func sorted(list ...string) []string {
	for i := range list {
		for k := i; k > 0 && list[k] < list[k-1]; k-- {
			list[k], list[k-1] = list[k-1], list[k]
		}
	}
	return list
}

// While a copy is filled it has no name, where the system can do that.
func TestDraftHasNoName(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, copyName)
	d, err := newDraft(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.WriteString("all of it"); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); runtime.GOOS == "linux" && !d.named && left != "" {
		t.Errorf("there is %s", left)
	}
	if err := d.name(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); string(data) != "all of it" || err != nil {
		t.Errorf("%q %v", data, err)
	}
}

// A temporary directory within the state is not used: a read changes nothing there.
func TestTemporaryDirectoryWithinTheState(t *testing.T) {
	state := t.TempDir()
	t.Cleanup(func() { dropCopies() })
	tmp := filepath.Join(state, "tmp")
	for _, dir := range []string{"agents/main/agent", "state", "tmp", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(state, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tmp, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ database, tmp string }{
		{"agents/main/agent/openclaw-agent.sqlite", tmp},
		{"agents/main/agent/openclaw-agent.sqlite", link},
		{"state/openclaw.sqlite", tmp},
		{"elsewhere/shared.sqlite", filepath.Join(state, "elsewhere")},
	} {
		path := filepath.Join(state, c.database)
		run(t, "crash", path)
		if err := os.Remove(path + "-shm"); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", c.tmp)
		before := treeHash(t, state)
		if err := childRead(path, "3", "private copy"); err != nil {
			t.Error(err)
		}
		if treeHash(t, state) != before {
			t.Errorf("%s with TMPDIR=%s: the tree changed", c.database, c.tmp)
		}
		dropCopies()
		spare := spareTemp
		spareTemp = nil
		_, _, err := rowsOf(path)
		spareTemp = spare
		if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "lies within") || !strings.Contains(err.Error(), "set TMPDIR") {
			t.Error(err)
		}
		for _, suffix := range []string{"", "-wal"} {
			os.Remove(path + suffix)
		}
	}
}
