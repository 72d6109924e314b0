//go:build unix && !linux && !darwin

package journal

import "errors"

func (system) Move(from, to string) error { return moveChecked(from, to) }

func (system) Exchange(string, string) error { return errors.ErrUnsupported }

func (system) SyncFS(string) error { return errors.ErrUnsupported }
