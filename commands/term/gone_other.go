//go:build !unix

package term

// Gone tells whether nobody can read any more what is written here. Here it is found out only by writing.
func (o *Out) Gone() bool { return false }
