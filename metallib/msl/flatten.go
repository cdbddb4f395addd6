package msl

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	quotedInclude = regexp.MustCompile(`^\s*#\s*include\s*"([^"]+)"`)
	angleInclude  = regexp.MustCompile(`^\s*#\s*include\s*<([^>]+)>`)
	pragmaOnce    = regexp.MustCompile(`^\s*#\s*pragma\s+once\b`)
	guardLine     = regexp.MustCompile(`^\s*#\s*ifndef\s+\w+`)
)

// Flatten joins source files into one that includes nothing but the standard library, since a device compiles a single
// string. A header that guards itself (#pragma once, or #ifndef as its first directive) is put in once, any other
// wherever it is included. #line directives keep the names and lines of messages.
func Flatten(files, include []string) (string, error) {
	f := &flattener{include: include, done: map[string]bool{}, system: map[string]bool{}}
	for _, file := range files {
		if err := f.file(file, nil); err != nil {
			return "", err
		}
	}
	return f.out.String(), nil
}

type flattener struct {
	include      []string
	out          strings.Builder
	done, system map[string]bool
}

func (f *flattener) file(path string, from []string) error {
	for _, p := range from {
		if p == path {
			return fmt.Errorf("msl: %s includes itself", path)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("msl: %w", err)
	}
	source := strings.ReplaceAll(string(data), "\r\n", "\n")
	if guarded(source) {
		if f.done[path] {
			return nil
		}
		f.done[path] = true
	}
	f.line(1, path)
	for i, line := range strings.Split(strings.TrimSuffix(source, "\n"), "\n") {
		switch {
		case pragmaOnce.MatchString(line):
			f.out.WriteByte('\n')
		case quotedInclude.MatchString(line):
			name := quotedInclude.FindStringSubmatch(line)[1]
			found, err := f.find(name, filepath.Dir(path))
			if err != nil {
				return fmt.Errorf("msl: %s:%d: %w", path, i+1, err)
			}
			if err := f.file(found, append(from, path)); err != nil {
				return err
			}
			f.line(i+2, path)
		case angleInclude.MatchString(line):
			name := angleInclude.FindStringSubmatch(line)[1]
			if !f.system[name] {
				f.system[name] = true
				f.out.WriteString(line)
			}
			f.out.WriteByte('\n')
		default:
			f.out.WriteString(line)
			f.out.WriteByte('\n')
		}
	}
	return nil
}

// line says where the next line comes from; the name without folders, so that the result does not depend on them.
func (f *flattener) line(n int, path string) {
	fmt.Fprintf(&f.out, "#line %d %q\n", n, filepath.Base(path))
}

func (f *flattener) find(name, dir string) (string, error) {
	for _, d := range append([]string{dir}, f.include...) {
		path := filepath.Join(d, filepath.FromSlash(name))
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q is not found", name)
}

// guarded tells whether a header takes care of being included twice.
func guarded(source string) bool {
	s := bufio.NewScanner(strings.NewReader(source))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			return guardLine.MatchString(line) || pragmaOnce.MatchString(line)
		}
	}
	return false
}
