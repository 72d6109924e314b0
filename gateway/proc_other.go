//go:build !linux

package gateway

import "context"

// processes says that this system has no /proc to look into: the locks decide.
func (s *search) processes(context.Context) {
	s.add(Evidence{Kind: OSProcess, Points: None, Says: "processes and ports are not looked at on this system"})
}
