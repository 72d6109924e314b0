package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"oc/config/json5"
	"oc/store/span"
)

// The limits of $include in OpenClaw 2026.7.35.
const (
	maxIncludeDepth = 10
	maxIncludePath  = 4096     // characters; a path must be shorter
	maxIncludeBytes = 2 << 20  // a file's size
	maxConfigBytes  = 16 << 20 // ours; OpenClaw has none
)

// Ours: depth alone bounds no work, for ten files that each include thirty are 30 to the tenth. Every inclusion counts,
// also of a file that was included before.
const (
	maxIncludes      = 1000
	maxIncludeTotal  = 64 << 20 // bytes
	maxIncludeValues = 1 << 20  // each takes some 200 bytes of memory
)

// read returns the configuration with includes and variables put in. It is never nil.
func (c *Config) read() *Node {
	empty := &Node{Kind: json5.Object}
	data, err := readRegular(c.ConfigFile, maxConfigBytes)
	if errors.Is(err, fs.ErrNotExist) {
		if c.named {
			c.warn(Warning{File: c.ConfigFile, Reason: "there is no such file; the defaults are used"})
		}
		return empty
	}
	if err != nil {
		c.broken(Warning{File: c.ConfigFile, Reason: "cannot be read: " + cause(err)})
		return empty
	}
	root := c.parse(&file{path: c.ConfigFile, data: data})
	if root == nil {
		return empty
	}
	dir := filepath.Dir(c.ConfigFile)
	in := includer{
		c: c, roots: slices.Concat([]includeRoot{{dir, realPath(dir)}}, c.includeRoots()),
		chain: []string{c.ConfigFile}, work: &includeWork{read: map[string]*included{}},
	}
	root = in.process(root, "")
	if root.Kind != json5.Object {
		file, line, col := root.Place()
		c.broken(Warning{File: file, Line: line, Col: col, Reason: "holds " + article(root.Kind) + " where an object should be"})
		return empty
	}
	c.applyEnv(root)
	c.substitute(root, "")
	return root
}

func (c *Config) broken(w Warning) {
	c.Broken = true
	c.warn(w)
}

// parse reads one file; nil if it is not JSON5.
func (c *Config) parse(f *file) *Node {
	doc := c.parseDoc(f)
	if doc == nil {
		return nil
	}
	return lift(doc, f)
}

func (c *Config) parseDoc(f *file) *json5.Node {
	doc, err := json5.Parse(f.data)
	if err != nil {
		var at *json5.Error
		errors.As(err, &at)
		c.broken(Warning{File: f.path, Line: at.Line, Col: at.Column, Reason: fmt.Sprintf("is not JSON5: %s (byte %d)", at.Reason, at.Byte)})
		return nil
	}
	c.duplicates(doc.Root, f, "")
	return doc.Root
}

// duplicates warns about keys that stand more than once in an object.
func (c *Config) duplicates(n *json5.Node, f *file, path string) {
	for i, item := range n.Items {
		c.duplicates(item, f, indexPath(path, i))
	}
	for _, m := range n.Members {
		key := keyPath(path, m.Key)
		if m.Shadowed {
			c.warnSpan(f, m.KeySpan, key, "stands more than once; the last one counts", harmless)
		}
		c.duplicates(m.Value, f, key)
	}
}

// cause is an error of the file system without the path, which a warning names already.
func cause(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

func article(k json5.Kind) string {
	if k == json5.Array || k == json5.Object {
		return "an " + k.String()
	}
	if k == json5.Null {
		return "null"
	}
	return "a " + k.String()
}

// includeRoot is a directory that included files may stand in, as written and with its links followed.
type includeRoot struct{ dir, real string }

func (c *Config) includeRoots() []includeRoot {
	var roots []includeRoot
	for _, entry := range strings.Split(c.Getenv("OPENCLAW_INCLUDE_ROOTS"), string(filepath.ListSeparator)) {
		if entry = span.Trim(entry); entry != "" {
			dir := c.resolve(entry)
			roots = append(roots, includeRoot{dir, realPath(dir)})
		}
	}
	return roots
}

// realPath follows links; where that fails the path is its own.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// inside reports that path is root or stands below it.
func inside(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// includer puts the files in that $include names.
type includer struct {
	c     *Config
	roots []includeRoot
	chain []string // the files that lead here, the root file first
	work  *includeWork
}

// includeWork is what all inclusions of a configuration have cost.
type includeWork struct {
	files, bytes, values int
	over                 bool
	read                 map[string]*included
}

// included is a file that was read for an inclusion, once.
type included struct {
	file *file
	doc  *json5.Node // nil if it is not JSON5
	size int         // values in doc
	err  error
}

func (w *includeWork) open(c *Config, path string) *included {
	f := w.read[path]
	if f == nil {
		f = &included{file: &file{path: path}}
		if f.file.data, f.err = readIncluded(path); f.err == nil {
			f.doc = c.parseDoc(f.file)
			f.size = values(f.doc)
		}
		w.read[path] = f
	}
	w.files++
	w.bytes += len(f.file.data)
	w.values += f.size
	w.over = w.files > maxIncludes || w.bytes > maxIncludeTotal || w.values > maxIncludeValues
	return f
}

func values(n *json5.Node) int {
	if n == nil {
		return 0
	}
	sum := 1
	for _, item := range n.Items {
		sum += values(item)
	}
	for _, m := range n.Members {
		sum += values(m.Value)
	}
	return sum
}

// process returns the node with every $include below it replaced. A file that cannot be included is a warning, and adds nothing.
func (in includer) process(n *Node, path string) *Node {
	switch n.Kind {
	case json5.Array:
		for i, item := range n.Items {
			n.Items[i] = in.process(item, indexPath(path, i))
		}
	case json5.Object:
		include := n.At("$include")
		n.Members = slices.DeleteFunc(n.Members, func(m Member) bool { return m.Key == "$include" })
		for i := range n.Members {
			n.Members[i].Value = in.process(n.Members[i].Value, keyPath(path, n.Members[i].Key))
		}
		if include == nil {
			return n
		}
		included := in.include(include, keyPath(path, "$include"), path)
		switch {
		case included == nil:
		case len(n.Members) == 0:
			return included
		case included.Kind != json5.Object:
			in.refuse(include, keyPath(path, "$include"), "must name files that hold objects, for other keys stand beside it")
		default:
			return merge(included, n)
		}
	}
	return n
}

func (in includer) refuse(at *Node, key, reason string) {
	in.c.Broken = true
	in.c.warnAt(at, key, reason, serious)
}

// include returns what a $include brings, or nil.
func (in includer) include(value *Node, key, path string) *Node {
	switch value.Kind {
	case json5.String:
		return in.load(value, key, path)
	case json5.Array:
		all := &Node{Kind: json5.Object, Span: value.Span, file: value.file}
		for i, item := range value.Items {
			itemKey := indexPath(key, i)
			if item.Kind != json5.String {
				in.refuse(item, itemKey, "must be a path, not "+article(item.Kind))
				continue
			}
			if one := in.load(item, itemKey, path); one != nil {
				all = merge(all, one)
			}
		}
		return all
	}
	in.refuse(value, key, "must be a path or a list of paths, not "+article(value.Kind))
	return nil
}

func (in includer) load(value *Node, key, path string) *Node {
	if in.work.over {
		return nil
	}
	target, reason := in.target(value.Text)
	if reason != "" {
		in.refuse(value, key, reason)
		return nil
	}
	f := in.work.open(in.c, target)
	switch {
	case in.work.over:
		in.refuse(value, key, fmt.Sprintf("is one inclusion too many: all together are more than %d, or hold more than %d MiB or %d values; this and later ones are left out", maxIncludes, maxIncludeTotal>>20, maxIncludeValues))
		return nil
	case f.err != nil:
		in.refuse(value, key, fmt.Sprintf("cannot include %s: %s", quoted(target), cause(f.err)))
		return nil
	case f.doc == nil:
		return nil
	}
	in.chain = append(slices.Clone(in.chain), target)
	return in.process(lift(f.doc, f.file), path)
}

// target resolves the path of an include against the file that names it, or says why it may not be read.
func (in includer) target(text string) (path, reason string) {
	base := in.chain[len(in.chain)-1]
	switch {
	case strings.Contains(text, "\x00"):
		return "", "must not hold a zero byte"
	case len(text) >= maxIncludePath:
		return "", fmt.Sprintf("must be shorter than %d characters", maxIncludePath)
	}
	path = filepath.Clean(text)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(base), text)
	}
	if len(path) >= maxIncludePath {
		return "", fmt.Sprintf("must be shorter than %d characters", maxIncludePath)
	}
	if !slices.ContainsFunc(in.roots, func(r includeRoot) bool { return inside(r.dir, path) }) {
		return "", quoted(path) + " is outside of the configuration's directory and of OPENCLAW_INCLUDE_ROOTS"
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil && !slices.ContainsFunc(in.roots, func(r includeRoot) bool { return inside(r.real, real) }) {
		return "", quoted(path) + " is a link that leads outside of the configuration's directory and of OPENCLAW_INCLUDE_ROOTS"
	}
	if slices.Contains(in.chain, path) {
		return "", "includes itself: " + quoted(strings.Join(append(slices.Clone(in.chain), path), " -> "))
	}
	if len(in.chain) > maxIncludeDepth {
		return "", fmt.Sprintf("is nested more than %d files deep", maxIncludeDepth)
	}
	return path, ""
}

// quoted is a path as it can stand on a line.
func quoted(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// readIncluded reads a file that may be included: regular, not large, and known by one name only.
func readIncluded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && links(info) > 1 {
		return nil, errors.New("it has more than one hard link")
	}
	return readRegular(path, maxIncludeBytes)
}
