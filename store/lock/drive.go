package lock

import "strings"

const remoteDrive = 4 // DRIVE_REMOTE

// shared tells whether a folder of Windows is one of another machine: under the name of that machine, or under a letter that stands
// for it, which driveType tells by the root of the drive.
func shared(dir string, driveType func(root string) uint32) bool {
	dir = strings.ReplaceAll(dir, "/", `\`)
	for _, plain := range []string{`\\?\`, `\\.\`} { // a path that is to be taken as it stands
		if rest, ok := strings.CutPrefix(dir, plain); ok {
			if len(rest) >= 4 && strings.EqualFold(rest[:4], `UNC\`) {
				return true
			}
			dir = rest
			break
		}
	}
	if strings.HasPrefix(dir, `\\`) {
		return true
	}
	return len(dir) >= 2 && dir[1] == ':' && driveType(dir[:2]+`\`) == remoteDrive
}
