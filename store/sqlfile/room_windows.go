package sqlfile

import "os"

var spareTemp []string

// claim: here nobody can tell a leftover from a copy in use, and nothing is swept.
func claim(string) (*os.File, error) { return nil, nil }
