package sqlfile

import "errors"

func mkfifo(string) error { return errors.New("no pipes here") }
