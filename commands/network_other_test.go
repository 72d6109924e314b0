//go:build !linux

package commands

import "errors"

// withoutNetwork is for Linux, whose kernel can end what asks for a connection.
func withoutNetwork([]string) error { return errors.ErrUnsupported }
