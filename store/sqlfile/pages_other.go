//go:build !unix

package sqlfile

import "errors"

// mapped leaves the pages to SQLite.
func mapped(string) (*pages, error) { return nil, errors.ErrUnsupported }

func (p *pages) forget() {}
func (p *pages) close()  {}
