package term

import (
	"os"
	"os/exec"
	"strings"
)

// Page hands what is written to a terminal from now on to a pager, until done is called, which waits for it. The command is split at
// blanks: "less -R". Nothing happens where o is no terminal, or the pager cannot be run. A reader who leaves the pager ends the
// writing as one who leaves a pipe does. less, unless its own variable LESS says otherwise, leaves a text that fits the screen there
// and ends.
func (o *Out) Page(command string, environ []string) (done func()) {
	nothing := func() {}
	words := strings.Fields(command)
	if !o.terminal || len(words) == 0 || words[0] == "cat" {
		return nothing
	}
	screen, ok := o.screen.(*os.File)
	path, err := exec.LookPath(words[0])
	if !ok || err != nil {
		return nothing
	}
	pager := exec.Command(path, words[1:]...)
	pager.Stdout, pager.Stderr = screen, os.Stderr
	pager.Env = environ
	set := false
	for _, v := range environ {
		set = set || strings.HasPrefix(v, "LESS=")
	}
	if !set {
		pager.Env = append(environ[:len(environ):len(environ)], "LESS=FRX", "LV=-c")
	}
	in, err := pager.StdinPipe()
	if err != nil {
		return nothing
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	if err := pager.Start(); err != nil {
		return nothing
	}
	before := o.w
	o.w = in
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.flush()
		o.w = before
		in.Close()   //nolint:errcheck // the pager may be gone
		pager.Wait() //nolint:errcheck // its status says how the reader left it
	}
}
