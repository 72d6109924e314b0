//go:build unix && !linux && !darwin

package journal

func (system) Move(from, to string) error { return moveChecked(from, to) }
