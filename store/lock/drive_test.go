package lock

import "testing"

func TestShared(t *testing.T) {
	driveType := func(root string) uint32 {
		switch root {
		case `Z:\`, `z:\`:
			return remoteDrive
		case `C:\`:
			return 3
		}
		t.Errorf("asked for %s", root)
		return 0
	}
	for dir, want := range map[string]bool{
		`C:\Users\ada\.openclaw`:        false,
		`C:/Users/ada/.openclaw`:        false,
		`\\?\C:\Users\ada`:              false,
		`\\.\C:\Users\ada`:              false,
		`Z:\openclaw`:                   true,
		`z:/openclaw`:                   true,
		`\\nas\home\.openclaw`:          true,
		`//nas/home/.openclaw`:          true,
		`\\?\UNC\nas\home`:              true,
		`\\?\unc\nas\home`:              true,
		`\\?\Z:\x`:                      true,
		`.openclaw`:                     false,
		`\openclaw`:                     false,
		``:                              false,
		`\\?\Volume{0a1b2c3d}\openclaw`: false,
	} {
		if got := shared(dir, driveType); got != want {
			t.Errorf("%s: %v", dir, got)
		}
	}
}
