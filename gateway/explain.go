package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"syscall"

	"github.com/coder/websocket"
)

// explain turns an error of the transport into ours. The text of libraries is
// not repeated where it could hold an address with a secret.
func explain(ctx context.Context, err error, secrets []Secret) *Error {
	e := &Error{Err: err}
	var (
		closed websocket.CloseError
		op     *net.OpError
		cert   *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		e.Fault, e.Err = Interrupted, context.Canceled
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Fault, e.Err = Silent, context.DeadlineExceeded
	case errors.As(err, &closed):
		e.Fault, e.Close, e.Says = HungUp, int(closed.Code), said(closed.Reason, secrets...)
	case errors.Is(err, errOversize), errors.Is(err, websocket.ErrMessageTooBig):
		e.Fault, e.Says = Oversized, said(errOversize.Error())
	case errors.Is(err, errFrame):
		e.Fault, e.Says = Strange, errFrame.Error()
	case errors.As(err, &cert):
		e.Fault, e.Says = Strange, said(cert.Err.Error(), secrets...)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.As(err, &op),
		strings.Contains(err.Error(), "server closed idle connection"): // net/http's, which has no name
		e.Fault = HungUp
		if op != nil {
			e.Says = said(op.Err.Error(), secrets...)
		}
	default:
		e.Fault, e.Says = Strange, said(innermost(err).Error(), secrets...)
	}
	return e
}

// innermost is the cause that holds no address.
func innermost(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	for {
		next := errors.Unwrap(err)
		if next == nil || strings.TrimSpace(next.Error()) == "" {
			return err
		}
		err = next
	}
}

// refused reports that nothing listens: the one failure that says so.
func refused(err error) bool {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	const windowsRefused = syscall.Errno(10061)
	var number syscall.Errno
	return runtime.GOOS == "windows" && errors.As(err, &number) && number == windowsRefused
}
