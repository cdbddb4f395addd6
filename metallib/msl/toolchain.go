package msl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// The programs that compile; the environment variables name others.
const (
	clangName, clangVariable = "clang-22", "INGOT_CLANG"
	optName, optVariable     = "opt-22", "INGOT_OPT"
)

// Versions are the exact versions of the programs that compile. Two compilers of different versions may give different
// code for the same source, so a library is rebuilt with the versions it was built with.
type Versions struct {
	Clang string `json:"clang"`
	Opt   string `json:"opt"`
}

func findTool(name, variable string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		name = path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("msl: %s is not installed (set %s to its path): %w", name, variable, err)
	}
	// It will run in another folder.
	if path, err = filepath.Abs(path); err != nil {
		return "", fmt.Errorf("msl: %w", err)
	}
	return path, nil
}

// Available says why this machine cannot compile MSL, or nil if it can.
func Available() error {
	_, err := ToolVersions(context.Background())
	return err
}

var versionCache struct {
	sync.Mutex
	byPath map[string]string
}

// ToolVersions are the versions of the programs that [Compile] would use. A nil ctx is like context.Background.
func ToolVersions(ctx context.Context) (Versions, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	clang, err := findTool(clangName, clangVariable)
	if err != nil {
		return Versions{}, err
	}
	opt, err := findTool(optName, optVariable)
	if err != nil {
		return Versions{}, err
	}
	var v Versions
	if v.Clang, err = toolVersion(ctx, clang); err == nil {
		v.Opt, err = toolVersion(ctx, opt)
	}
	return v, err
}

var versionPattern = regexp.MustCompile(`version (\S.*)`)

// toolVersion asks a program once per process.
func toolVersion(ctx context.Context, path string) (string, error) {
	versionCache.Lock()
	defer versionCache.Unlock()
	if v, ok := versionCache.byPath[path]; ok {
		return v, nil
	}
	out, err := run(ctx, "", path, "--version")
	if err != nil {
		return "", err
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return "", fmt.Errorf("msl: %s --version names no version: %q", path, firstLine(out))
	}
	v := strings.TrimSpace(string(found[1]))
	if versionCache.byPath == nil {
		versionCache.byPath = map[string]string{}
	}
	versionCache.byPath[path] = v
	return v, nil
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line)
}

// A toolError is a program that failed; Output is what it wrote to its standard error.
type toolError struct {
	program string
	Output  string
	err     error
}

func (e *toolError) Error() string {
	return fmt.Sprintf("msl: %s: %v: %s", e.program, e.err, strings.TrimSpace(e.Output))
}

func (e *toolError) Unwrap() error { return e.err }

// run gives what the program wrote to its standard output. The locale is fixed, since messages are read.
func run(ctx context.Context, dir, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("msl: %s: %w", path, ctx.Err())
	}
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return nil, fmt.Errorf("msl: %s: %w", path, err)
		}
		return stdout.Bytes(), &toolError{program: path, Output: stderr.String(), err: err}
	}
	return stdout.Bytes(), nil
}
