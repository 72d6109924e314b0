package config

import (
	"encoding/json"
	"os"
	"testing"
)

// TestModelIDs compares with what 2026.7.35's own functions gave, recorded with the manifests of its bundled plugins.
func TestModelIDs(t *testing.T) {
	data, err := os.ReadFile("testdata/modelids.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		IDs  [][4]string `json:"ids"`  // provider, model, its canonical name, its name in a catalog
		Refs [][2]string `json:"refs"` // of the agents section, as written and canonical
	}
	if err := json.Unmarshal(data, &recorded); err != nil || len(recorded.IDs) < 300 || len(recorded.Refs) < 10 {
		t.Fatalf("%d ids, %d references: %v", len(recorded.IDs), len(recorded.Refs), err)
	}
	for _, r := range recorded.IDs {
		if got := modelID(r[0], r[1]); got != r[2] {
			t.Errorf("%q at %q: got %q, want %q", r[1], r[0], got, r[2])
		}
		if got := catalogModelID(r[0], r[1]); got != r[3] {
			t.Errorf("%q in the catalog of %q: got %q, want %q", r[1], r[0], got, r[3])
		}
	}
	for _, r := range recorded.Refs {
		if got := canonicalRef(r[0]); got != r[1] {
			t.Errorf("%q: got %q, want %q", r[0], got, r[1])
		}
	}
}
