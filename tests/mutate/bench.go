package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/msl"
)

// A bench compiles mutated shaders and runs the tests of package nn on them.
type bench struct {
	root, dir, binary string
	tests             string // the hash of the test binary
	shaders           map[string]string
	library           *metallib.Library

	mu    sync.Mutex
	sound map[string]*baseline
}

// A baseline is what a pattern's tests do with the shaders as they are.
type baseline struct {
	once sync.Once
	took time.Duration
	err  error
}

func newBench(ctx context.Context, root, dir string, shaders map[string]string) (*bench, error) {
	b := &bench{root: root, dir: dir, binary: filepath.Join(dir, "nn.test"), shaders: shaders, sound: map[string]*baseline{}}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-o", b.binary, "./nn")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the tests: %w\n%s", err, out)
	}
	data, err := os.ReadFile(b.binary)
	if err != nil {
		return nil, err
	}
	b.tests = hash(string(data))
	if b.library, err = metallib.Read(metallib.Default()); err != nil {
		return nil, err
	}
	return b, b.checkLibrary(ctx)
}

// checkLibrary refuses a default library that is not what this compiler makes of the shaders: a fault in one file would be mixed
// with other changes.
func (b *bench) checkLibrary(ctx context.Context) error {
	var files []string
	for _, name := range sortedNames(b.shaders) {
		if filepath.Ext(name) == ".metal" {
			files = append(files, filepath.Join(b.root, "shaders", name))
		}
	}
	flat, err := msl.Flatten(files, nil)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(metallib.Source(), flat) {
		return errors.New("the default library is not that of the shaders: run go generate ./metallib")
	}
	v, err := msl.ToolVersions(ctx)
	if err != nil {
		return err
	}
	if made := metallib.DefaultInfo().Compiler; made["clang"] != v.Clang || made["opt"] != v.Opt {
		return fmt.Errorf("the default library was made by %v, here is %+v: the code could differ", made, v)
	}
	return nil
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d\n%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// key names a fault and the shaders that are compiled for it.
func (b *bench) key(f fault) string {
	parts := []string{f.File, f.Old, f.New, f.Tests}
	if f.Kernels != "" {
		parts = append(parts, f.Kernels)
	}
	for _, file := range dependents(b.shaders, f.File) {
		for _, name := range slices.Sorted(maps.Keys(included(b.shaders, file))) {
			parts = append(parts, name, b.shaders[name])
		}
	}
	return hash(parts...)
}

// known is the result of an earlier run, if it still counts: more tests do not bring a fault back to life, but one that
// survived other tests is tried again.
func (b *bench) known(results *state, f fault) (result, bool) {
	r, ok := results.get(b.key(f))
	return r, ok && (r.Killed || r.Same || r.Tests == b.tests)
}

// compile compiles files of a set of shaders in a folder of their own.
func (b *bench) compile(ctx context.Context, shaders map[string]string, files []string) ([]metallib.Function, error) {
	dir, err := os.MkdirTemp(b.dir, "shaders-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range shaders {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	var out []metallib.Function
	for _, name := range files {
		lib, err := msl.Compile(ctx, shaders[name], msl.Options{Name: name, Include: []string{dir}})
		if err != nil {
			return nil, fmt.Errorf("compiling %s: %w", name, err)
		}
		out = append(out, lib.Functions...)
	}
	return out, nil
}

// replace puts functions in the place of those of the same name, and says how many differ.
func replace(lib *metallib.Library, with []metallib.Function) (changed int) {
	for i := range with {
		old := lib.Function(with[i].Name)
		switch {
		case old == nil:
			lib.Functions = append(lib.Functions, with[i])
			changed++
		case !bytes.Equal(old.Bitcode, with[i].Bitcode):
			*old = with[i]
			changed++
		}
	}
	return changed
}

// try plants a fault and runs its tests.
func (b *bench) try(ctx context.Context, f fault, worker int) (result, error) {
	text, err := f.apply(b.shaders[f.File])
	if err != nil {
		return result{}, err
	}
	sound := b.baseline(ctx, f.Tests, worker)
	if sound.err != nil {
		return result{}, sound.err
	}
	shaders := make(map[string]string, len(b.shaders))
	for name, t := range b.shaders {
		shaders[name] = t
	}
	shaders[f.File] = text
	files := dependents(shaders, f.File)
	if f.Kernels != "" {
		kernels, err := regexp.Compile(f.Kernels)
		if err != nil {
			return result{}, err
		}
		for _, file := range files {
			shaders[file] = only(shaders[file], kernels)
		}
	}
	functions, err := b.compile(ctx, shaders, files)
	if err != nil {
		return result{}, err
	}
	lib := &metallib.Library{Functions: slices.Clone(b.library.Functions)}
	if replace(lib, functions) == 0 {
		return result{Same: true}, nil
	}
	// A fault may make a loop endless; the tests' own time is no measure on a busy machine, but a multiple of it is.
	failed, line, err := b.test(ctx, lib, f.Tests, 30*time.Second+20*sound.took, worker)
	if err != nil {
		return result{}, err
	}
	return result{Killed: failed, Line: line, Tests: b.tests}, nil
}

// baseline runs a pattern's tests with the shaders as they are, once.
func (b *bench) baseline(ctx context.Context, tests string, worker int) *baseline {
	b.mu.Lock()
	s := b.sound[tests]
	if s == nil {
		s = &baseline{}
		b.sound[tests] = s
	}
	b.mu.Unlock()
	s.once.Do(func() {
		began := time.Now()
		failed, line, err := b.test(ctx, b.library, tests, 10*time.Minute, worker)
		s.took = time.Since(began)
		switch {
		case err != nil:
			s.err = err
		case failed:
			s.err = fmt.Errorf("the tests %q fail without a fault: %s", tests, line)
		}
	})
	return s
}

// test runs tests on a library, up to the first that fails, and says why it did.
func (b *bench) test(ctx context.Context, lib *metallib.Library, tests string, limit time.Duration, worker int) (failed bool, line string, err error) {
	data, err := metallib.Write(lib)
	if err != nil {
		return false, "", err
	}
	path := filepath.Join(b.dir, fmt.Sprintf("%d.metallib", worker))
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return false, "", err
	}
	cmd := exec.CommandContext(ctx, b.binary, "-test.run="+tests, "-test.failfast", "-test.count=1", "-test.v", "-test.timeout="+limit.String())
	cmd.Dir = filepath.Join(b.root, "nn")
	cmd.Env = append(os.Environ(), "INGOT_TEST_LIBRARY="+path)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return false, "", ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return false, "", err
	}
	return verdict(string(out), err != nil)
}

// verdict reads the output of a test binary that was run with -test.v.
func verdict(out string, failed bool) (bool, string, error) {
	if !failed {
		if !strings.Contains(out, "\n--- PASS: ") && !strings.HasPrefix(out, "--- PASS: ") {
			return false, "", errors.New("the pattern names no test that runs")
		}
		return false, "", nil
	}
	test, line := "", ""
	for text := range strings.Lines(out) {
		text = strings.TrimSpace(text)
		if name, ok := strings.CutPrefix(text, "=== RUN   "); ok {
			test, line = name, ""
			continue
		}
		if strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ") {
			return true, test + ": " + text, nil
		}
		if strings.HasPrefix(text, "--- FAIL: ") {
			name, _, _ := strings.Cut(strings.TrimPrefix(text, "--- FAIL: "), " ")
			return true, strings.TrimSuffix(name+": "+line, ": "), nil
		}
		if line == "" && strings.Contains(text, "_test.go:") {
			line = text
		}
	}
	return false, "", fmt.Errorf("the tests ended without a verdict:\n%s", out)
}
