package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"oc/fixtures"
	"oc/store"
)

// The index beside a database is looked at when both eras are asked for, as a release of the file era sees it, and each finding is
// marked; without that nothing of it is told but that it is there.
func TestBothEras(t *testing.T) {
	e := eras(t)
	if err := os.Remove(filepath.Join(filepath.Dir(fixtures.Store(e.Both, "main")), e.Outside)); err != nil {
		t.Fatal(err)
	}
	codes := []Code{TranscriptMissing, EraBoth, LeftoverUncovered}
	one := examine(t, e.Both, func(o *Options) { o.Only = codes })
	if one.Count(string(TranscriptMissing)) != 0 || one.Count(string(EraBoth)) != 1 || len(one.Stores) != 1 {
		t.Errorf("the era that is read: %+v", one.Findings)
	}
	both := examine(t, e.Both, func(o *Options) { o.Only, o.Both = codes, true })
	if both.Count(string(TranscriptMissing)) != 1 || both.Count(string(EraBoth)) != 1 || len(both.Stores) != 2 {
		t.Fatalf("both eras: %+v", both.Findings)
	}
	for _, f := range both.Findings {
		want := store.FileEra
		if f.Code == EraBoth {
			want = store.SQLiteEra
		}
		if f.Era != want {
			t.Errorf("%s is marked %q, want %q", f.Code, f.Era, want)
		}
		if f.Code == TranscriptMissing && f.Key != e.Extra {
			t.Errorf("missing: %s, want %s", f.Key, e.Extra)
		}
	}
	if both.Size.Transcripts != one.Size.Transcripts {
		t.Errorf("transcripts were counted twice: %d, %d", both.Size.Transcripts, one.Size.Transcripts)
	}
	// A damaged index beside the database is an error then.
	if err := os.WriteFile(fixtures.Store(e.Both, "main"), []byte(`{"agent:main:main":{"sessionId":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := examine(t, e.Both, func(o *Options) { o.Only = []Code{IndexDamaged} }); len(r.Findings) != 0 {
		t.Errorf("the era that is not read: %+v", r.Findings)
	}
	if r := examine(t, e.Both, func(o *Options) { o.Only, o.Both = []Code{IndexDamaged}, true }); len(r.Findings) != 1 || r.Findings[0].Era != store.FileEra {
		t.Errorf("both eras: %+v", r.Findings)
	}
}

func eras(t *testing.T) fixtures.Eras {
	t.Helper()
	e, err := fixtures.S16(t.TempDir(), fixtures.Now)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
