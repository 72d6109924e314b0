package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Two rooms may speak with other machines: gateway, with the gateway that is configured, and transcript/provider, with the endpoint that writes a
// summary and is named on the command line. No other room even knows the packages for it.
func TestWhoMayConnect(t *testing.T) {
	may := []string{"gateway", "transcript/provider", "fixtures/peer"}
	parts := []string{"net", "net/http", "net/rpc", "net/smtp", "crypto/tls", "github.com/coder/websocket", "golang.org/x/net"}
	files, found := 0, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(path))
		for _, i := range parsed.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if !slices.ContainsFunc(parts, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") && p != "net" }) {
				continue
			}
			if found[room] = true; slices.Contains(may, room) {
				continue
			}
			// To tell a kind of picture by its first bytes is no connection.
			text, _ := os.ReadFile(path)
			if uses := strings.Count(string(text), "http."); name != "net/http" || uses == 0 || uses != strings.Count(string(text), "http.DetectContentType(") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 300 || !found["gateway"] || !found["transcript/provider"] {
		t.Errorf("%d files were looked at, and connections are made by %v", files, found)
	}
}
