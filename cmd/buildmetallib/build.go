package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/msl"
)

// A build is one compilation of shaders to a library.
type build struct {
	stdout                            io.Writer
	inputs, include, defines          []string
	output, route, info, source, keep string
	upgrade                           bool
}

// What the shaders are written in and compiled for.
const (
	metalVersion = "3.1"
	airVersion   = "2.6"
	minMacOS     = "14.0"
)

func (b *build) run(ctx context.Context) error {
	files, err := b.files()
	if err != nil {
		return err
	}
	if b.route == "" {
		b.route = "clang"
		if runtime.GOOS == "darwin" {
			if _, err := exec.LookPath("xcrun"); err == nil {
				b.route = "xcrun"
			}
		}
	}
	compilers := map[string]func() (map[string]string, func() ([]byte, error), error){
		"clang": func() (map[string]string, func() ([]byte, error), error) { return b.clang(ctx, files) },
		"xcrun": func() (map[string]string, func() ([]byte, error), error) { return b.xcrun(ctx, files) },
	}
	start := compilers[b.route]
	if start == nil {
		return fmt.Errorf("route %q is neither clang nor xcrun", b.route)
	}
	versions, compile, err := start()
	if err != nil {
		return err
	}
	if err := b.checkVersions(versions); err != nil {
		return err
	}
	flat, err := msl.Flatten(files, b.include)
	if err != nil {
		return err
	}
	flat = flatHeader + flat
	data, err := compile()
	if err != nil {
		return err
	}
	lib, err := metallib.Read(data)
	if err != nil {
		return fmt.Errorf("the library that was built cannot be read back: %w", err)
	}
	info := metallib.Info{
		SHA256: sum(data), SourceSHA256: sum([]byte(flat)), MetalVersion: metalVersion, AIRVersion: airVersion, MinMacOS: minMacOS,
		Route: b.route, Compiler: versions, Kernels: []string{},
	}
	for i := range lib.Functions {
		info.Kernels = append(info.Kernels, lib.Functions[i].Name)
	}
	slices.Sort(info.Kernels)
	if err := b.write(data, flat, info); err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.stdout, "%s: %d kernels, %d bytes, SHA-256 %s\n", b.output, len(info.Kernels), len(data), info.SHA256)
	return err
}

// flatHeader begins the single-file source.
const flatHeader = "// Joined from several files by buildmetallib. Change those, not this.\n\n"

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// files are the sources: those named, and the .metal files of folders named, in order of their names.
func (b *build) files() ([]string, error) {
	var out []string
	for _, in := range b.inputs {
		info, err := os.Stat(in)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, in)
			continue
		}
		found, err := filepath.Glob(filepath.Join(in, "*.metal"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s has no .metal files", in)
		}
		slices.Sort(found)
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, errors.New("no source files given (see -help)")
	}
	return out, nil
}

// checkVersions refuses another compiler than the one that the description of the library names.
func (b *build) checkVersions(have map[string]string) error {
	if b.info == "" || b.upgrade {
		return nil
	}
	data, err := os.ReadFile(b.info)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var was metallib.Info
	if err := json.Unmarshal(data, &was); err != nil {
		return fmt.Errorf("%s: %w", b.info, err)
	}
	if was.Route == b.route && maps.Equal(was.Compiler, have) {
		return nil
	}
	return fmt.Errorf("%s was built by %s, here is %s: the code could differ. Install that version, or give -upgrade to rebuild with this one",
		b.output, describe(was.Route, was.Compiler), describe(b.route, have))
}

func describe(route string, versions map[string]string) string {
	s := route
	for _, k := range slices.Sorted(maps.Keys(versions)) {
		s += fmt.Sprintf(" %s %q", k, versions[k])
	}
	return s
}

// write puts the results in place, each only if it differs, so that a rebuild without changes touches nothing.
func (b *build) write(data []byte, flat string, info metallib.Info) error {
	text, err := json.MarshalIndent(info, "", "  ")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{b.output, data}, {b.source, []byte(flat)}, {b.info, append(text, '\n')}} {
		if f.name == "" {
			continue
		}
		if old, err := os.ReadFile(f.name); err == nil && bytes.Equal(old, f.data) {
			continue
		}
		if err := os.WriteFile(f.name, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// clang compiles with our own front and back end.
func (b *build) clang(ctx context.Context, files []string) (map[string]string, func() ([]byte, error), error) {
	v, err := msl.ToolVersions(ctx)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"clang": v.Clang, "opt": v.Opt}, func() ([]byte, error) {
		lib := &metallib.Library{}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			opts := msl.Options{Name: file, Include: append([]string{filepath.Dir(file)}, b.include...), Defines: b.defines}
			if b.keep != "" {
				opts.Keep = filepath.Join(b.keep, filepath.Base(file))
			}
			one, err := msl.Compile(ctx, string(source), opts)
			if err != nil {
				return nil, err
			}
			lib.Functions = append(lib.Functions, one.Functions...)
		}
		return metallib.Write(lib)
	}, nil
}
