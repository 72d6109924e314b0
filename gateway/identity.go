package gateway

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Identity is a device identity: a key pair by which a gateway on another
// machine knows oc again (spec/gateway.md 2.2). OpenClaw keeps its own
// elsewhere; oc never uses that one.
type Identity struct {
	ID  string // SHA-256 of the public key, hex
	key ed25519.PrivateKey
}

// Format keeps the key out of every print.
func (i *Identity) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "device %s", i.ID) }

// IdentityFile is where the identity of a state directory is kept.
func IdentityFile(stateDir string) string { return filepath.Join(stateDir, ".oc", "identity.json") }

type identityFile struct {
	Version int    `json:"version"`
	Device  string `json:"deviceId"`
	Seed    string `json:"seed"` // ed25519, base64url
}

// LoadIdentity reads an identity. A file that is missing is fs.ErrNotExist; one
// that others may read is refused.
func LoadIdentity(path string) (*Identity, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("read device identity %s: %w", path, errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read device identity %s: it is not a plain file", path)
	}
	if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		return nil, fmt.Errorf("read device identity %s: others may read it (mode %04o): chmod 600 it, or remove it and pair again", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read device identity %s: %w", path, errors.Unwrap(err))
	}
	var file identityFile
	seed := []byte(nil)
	if err = json.Unmarshal(raw, &file); err == nil {
		seed, err = base64.RawURLEncoding.DecodeString(file.Seed)
	}
	if err != nil || file.Version != 1 || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read device identity %s: it is damaged: remove it and pair again", path)
	}
	id := identity(seed)
	if id.ID != file.Device {
		return nil, fmt.Errorf("read device identity %s: its key is not the one of device %q: remove it and pair again", path, said(file.Device))
	}
	return id, nil
}

// MakeIdentity reads the identity at path, or makes one: the file 0600, its
// directory 0700. Two that make one at a time get the same.
func MakeIdentity(path string) (*Identity, error) {
	id, err := LoadIdentity(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails
	id = identity(seed)
	raw, _ := json.MarshalIndent(identityFile{1, id.ID, base64.RawURLEncoding.EncodeToString(seed)}, "", "  ")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make device identity: %w", err)
	}
	// Written whole under another name, then linked: a reader never sees half.
	temp, err := os.CreateTemp(filepath.Dir(path), "identity-*")
	if err != nil {
		return nil, fmt.Errorf("make device identity: %w", err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(append(raw, '\n'))
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return nil, fmt.Errorf("make device identity %s: %w", path, err)
	}
	switch err := os.Link(temp.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return LoadIdentity(path)
	case err != nil: // a file system without links
		if err := os.Rename(temp.Name(), path); err != nil {
			return nil, fmt.Errorf("make device identity: %w", err)
		}
	}
	return id, nil
}

func identity(seed []byte) *Identity {
	key := ed25519.NewKeyFromSeed(seed)
	sum := sha256.Sum256(key.Public().(ed25519.PublicKey))
	return &Identity{hex.EncodeToString(sum[:]), key}
}

// signature is what a device vouches for.
type signature struct {
	client, mode, platform string
	scopes                 []string
	token                  Secret
	at                     int64 // the challenge's own stamp, epoch ms
	nonce                  string
}

// device is the proof in a connect frame.
type device struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  int64  `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// sign makes the proof of version 3: the fields joined by |, without a device
// family.
func (i *Identity) sign(s signature) device {
	text := strings.Join([]string{
		"v3", i.ID, s.client, s.mode, "operator", strings.Join(s.scopes, ","), strconv.FormatInt(s.at, 10),
		string(s.token), s.nonce, strings.ToLower(s.platform), "",
	}, "|")
	encode := base64.RawURLEncoding.EncodeToString
	return device{i.ID, encode(i.key.Public().(ed25519.PublicKey)), encode(ed25519.Sign(i.key, []byte(text))), s.at, s.nonce}
}
