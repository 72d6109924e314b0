package sqlfile

import "context"

type breakingKey struct{}

// Breaking is for tests of everything that writes: f is asked before each statement of a Write that changes something, COMMIT among them, and
// its error becomes the statement's.
func Breaking(ctx context.Context, f func(query string) error) context.Context {
	return context.WithValue(ctx, breakingKey{}, f)
}

func breaking(ctx context.Context) func(string) error {
	f, _ := ctx.Value(breakingKey{}).(func(string) error)
	return f
}
