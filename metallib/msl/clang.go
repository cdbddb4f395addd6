package msl

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// headers are the standard library: metal_stdlib and its parts for the preprocessor, ingot_prelude.h for the compiler.
//
//go:embed shim
var headers embed.FS

// systemHeaders are the names of MSL's headers, which all give the same macros.
var systemHeaders = []string{"metal_stdlib", "metal_assert", "metal_atomic", "metal_common", "metal_compute", "metal_config",
	"metal_geometric", "metal_graphics", "metal_integer", "metal_limits", "metal_math", "metal_matrix", "metal_numeric", "metal_pack",
	"metal_quadgroup", "metal_relational", "metal_simdgroup", "metal_types", "metal_type_traits", "metal_uniform", "metal_array",
	"metal_packed_vector", "metal_simdgroup_matrix", "metal_extended_vector", "simd/simd.h"}

// writeHeaders puts the standard library into dir.
func writeHeaders(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "simd"), 0o755); err != nil {
		return err
	}
	for _, name := range systemHeaders {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.WriteFile(path, []byte("#include \"ingot_macros.h\"\n"), 0o644); err != nil {
			return err
		}
	}
	return fs.WalkDir(headers, "shim", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := headers.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o644)
	})
}

// language selects C++ for OpenCL, whose address spaces are those of AIR. The triple's layout differs from AIR's in
// nothing that MSL can express.
var language = []string{"-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64", "-cl-no-stdinc", "-w", "-fno-color-diagnostics"}

// definitions are the predefined macros of Metal 3.1 on macOS.
var definitions = []string{"-D__METAL__=1", "-D__METAL_VERSION__=310", "-D__METAL_MACOS__=1", "-D__HAVE_BFLOAT__=1",
	"-D__METAL_FAST_MATH__=0", "-U__OPENCL_CPP_VERSION__", "-U__OPENCL_VERSION__", "-U__OPENCL_C_VERSION__"}

// codeGeneration asks for unoptimised code that is fit to be optimised, with floating-point arithmetic as written, and
// with debug information, from which the types of parameters are read.
var codeGeneration = []string{"-O2", "-Xclang", "-disable-llvm-passes", "-ffp-contract=off", "-cl-fp32-correctly-rounded-divide-sqrt",
	"-fno-strict-aliasing", "-g", "-S", "-emit-llvm"}

// preprocess runs the preprocessor over a file.
func (c *compiler) preprocess(ctx context.Context, file string) (string, error) {
	args := append([]string{}, language...)
	args = append(args, definitions...)
	for _, d := range c.opts.Defines {
		args = append(args, "-D"+d)
	}
	for _, dir := range c.opts.Include {
		args = append(args, "-I", dir)
	}
	args = append(args, "-I", c.dir, "-E", file)
	out, err := run(ctx, "", c.clang, args...)
	var failed *toolError
	if errors.As(err, &failed) {
		return "", c.diagnose(failed, nil)
	}
	return string(out), err
}

// scalarRank is clang's refusal to convert the scalar of a mixed operation to the type of the vector's elements.
var scalarRank = regexp.MustCompile(`:(\d+):(\d+):((?:\{\d+:\d+-\d+:\d+\})+): error: scalar operand type has greater rank than the type of the vector element\. \('([^']*)'( \(aka '[^']*'\))?( \(vector)?`)

var sourceRange = regexp.MustCompile(`\{(\d+):(\d+)-(\d+):(\d+)\}`)

// maxFixes bounds the rounds in which mixed operations are mended: clang stops at the first error of an expression.
const maxFixes = 16

// generate compiles rewritten source to the text of an LLVM module.
func (c *compiler) generate(ctx context.Context, e *emitted) (string, error) {
	file := filepath.Join(c.dir, "rewritten.cl")
	args := append([]string{}, language...)
	args = append(args, codeGeneration...)
	args = append(args, "-I", c.dir, "-include", filepath.Join(c.dir, "ingot_prelude.h"), "-ferror-limit=0",
		"-fdiagnostics-print-source-range-info", "-fno-caret-diagnostics", "-o", "-", "rewritten.cl")
	for round := 0; ; round++ {
		if err := os.WriteFile(file, []byte(e.text), 0o644); err != nil {
			return "", err
		}
		out, err := run(ctx, c.dir, c.clang, args...)
		var failed *toolError
		if !errors.As(err, &failed) {
			return string(out), err
		}
		if round == maxFixes || !e.mendRanks(failed.Output) {
			return "", c.diagnose(failed, e)
		}
	}
}

// mendRanks converts the scalar of each mixed operation that clang refused; false if there was none.
func (e *emitted) mendRanks(output string) bool {
	type fix struct{ scalar, vector [4]int }
	var fixes []fix
	for _, line := range strings.Split(output, "\n") {
		m := scalarRank.FindStringSubmatch(line)
		if m == nil || !strings.HasPrefix(line, "rewritten.cl:") {
			continue
		}
		ranges := sourceRange.FindAllStringSubmatch(m[3], -1)
		if len(ranges) != 2 {
			continue
		}
		var r [2][4]int
		for i := range r {
			for j := range r[i] {
				r[i][j], _ = strconv.Atoi(ranges[i][j+1])
			}
		}
		f := fix{scalar: r[0], vector: r[1]}
		if m[6] != "" {
			f.scalar, f.vector = r[1], r[0]
		}
		fixes = append(fixes, f)
	}
	done := map[int]bool{}
	for _, f := range fixes {
		// One fix per line and round: it moves what comes after it.
		if line := f.scalar[0]; line == f.scalar[2] && f.vector[0] == f.vector[2] && !done[line] {
			vector, ok := e.slice(f.vector)
			if !ok {
				continue
			}
			if e.wrap(f.scalar, "__msl_mix<decltype(("+vector+"))>(", ")") {
				done[line] = true
			}
		}
	}
	return len(done) > 0
}

// slice is the text of a range within one line.
func (e *emitted) slice(r [4]int) (string, bool) {
	lines := strings.Split(e.text, "\n")
	if r[0] < 1 || r[0] > len(lines) || r[1] < 1 || r[3] < r[1] || r[3]-1 > len(lines[r[0]-1]) {
		return "", false
	}
	return lines[r[0]-1][r[1]-1 : r[3]-1], true
}

// wrap puts text before and after a range within one line.
func (e *emitted) wrap(r [4]int, before, after string) bool {
	inner, ok := e.slice(r)
	if !ok {
		return false
	}
	lines := strings.Split(e.text, "\n")
	line := lines[r[0]-1]
	lines[r[0]-1] = line[:r[1]-1] + before + inner + after + line[r[3]-1:]
	e.text = strings.Join(lines, "\n")
	marks := e.lines[r[0]]
	for i := range marks {
		switch m := &marks[i]; {
		case m.column >= r[3]:
			m.column += len(before) + len(after)
		case m.column >= r[1]:
			m.column += len(before)
		}
	}
	return true
}
