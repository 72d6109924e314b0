//go:build !unix

package term

// resizes never tells: the screen has its new size when it is drawn the next time.
func resizes() (resized <-chan struct{}, stop func()) { return nil, func() {} }
