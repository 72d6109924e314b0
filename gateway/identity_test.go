package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

func TestIdentity(t *testing.T) {
	path := IdentityFile(t.TempDir())
	if _, err := LoadIdentity(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var ids [8]*Identity
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			id, err := MakeIdentity(path)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = id
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == nil || id.ID != ids[0].ID || len(id.ID) != 64 {
			t.Fatalf("%v", ids)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if dir, _ := os.ReadDir(filepath.Dir(path)); len(dir) != 1 {
		t.Errorf("left behind: %v", dir)
	}

	d := ids[0].sign(signature{client: "cli", mode: "cli", platform: "Linux", scopes: []string{"a", "b"}, token: "t", at: 17, nonce: "n"})
	key, err := base64.RawURLEncoding.DecodeString(d.PublicKey)
	if err != nil || len(key) != 32 {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(key); d.ID != hex.EncodeToString(sum[:]) {
		t.Error("the id is not the key's")
	}
	signed, _ := base64.RawURLEncoding.DecodeString(d.Signature)
	if !ed25519.Verify(key, []byte("v3|"+d.ID+"|cli|cli|operator|a,b|17|t|n|linux|"), signed) {
		t.Error("the signature is not of this text")
	}
}

func TestDamagedIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(path string) error
		says string
	}{
		"readable by others": {func(p string) error { return os.Chmod(p, 0o644) }, "chmod 600"},
		"empty":              {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "damaged"},
		"binary":             {func(p string) error { return os.WriteFile(p, []byte("\x00\xff"), 0o600) }, "damaged"},
		"another version":    {func(p string) error { return os.WriteFile(p, []byte(`{"version":2}`), 0o600) }, "damaged"},
		"another key": {func(p string) error {
			return os.WriteFile(p, []byte(`{"version":1,"deviceId":"x","seed":"`+base64.RawURLEncoding.EncodeToString(make([]byte, 32))+`"}`), 0o600)
		}, "not the one of device"},
		"a link":      {func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) }, "not a plain file"},
		"a directory": {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }, "not a plain file"},
	} {
		path := IdentityFile(t.TempDir())
		if _, err := MakeIdentity(path); err != nil {
			t.Fatal(err)
		}
		if err := c.do(path); err != nil {
			t.Fatal(err)
		}
		for _, f := range []func(string) (*Identity, error){LoadIdentity, MakeIdentity} {
			if _, err := f(path); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A gateway that wants an identity gets one only when the caller has opted in.
func TestIdentityOnDemand(t *testing.T) {
	hello := greeting(t, "2026.9.6")
	o := listen(t, func(ctx context.Context, ws *websocket.Conn) {
		_ = ws.Write(ctx, websocket.MessageText, []byte(challenge))
		_, raw, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var connect struct {
			ID     string
			Params struct{ Device *device }
		}
		_ = json.Unmarshal(raw, &connect)
		if connect.Params.Device == nil {
			_ = ws.Write(ctx, websocket.MessageText, []byte(`{"type":"res","id":"1","ok":false,"error":{"code":"NOT_PAIRED","message":"device identity required","details":{"code":"DEVICE_IDENTITY_REQUIRED"}}}`))
			return
		}
		if d := connect.Params.Device; d.Nonce != "n" || d.SignedAt != 1796037875738 {
			t.Errorf("%+v", d)
		}
		say(ctx, ws, message{Type: "res", ID: connect.ID, OK: yes(true), Payload: hello})
		_, _, _ = ws.Read(ctx)
	})
	_, err := Dial(t.Context(), o)
	if e := (*Error)(nil); !errors.As(err, &e) || e.Fault != Denied || !strings.Contains(err.Error(), "device identity") {
		t.Error(err)
	}
	o.Identity = func() (*Identity, error) { return nil, errors.New("read it: no space") }
	if _, err := Dial(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Error(err)
	}
	path := IdentityFile(t.TempDir())
	o.Identity = func() (*Identity, error) { return MakeIdentity(path) }
	dial(t, o)
}
