package msl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// defaultName is the name of a source without one.
const defaultName = "program_source"

// Options are the settings of one compilation; the zero value is ready to use.
type Options struct {
	// Name is the source's name in messages; "program_source", as in Metal's own messages, if empty.
	Name string
	// Include are the folders in which #include "file" is looked for.
	Include []string
	// Defines are macros, NAME or NAME=VALUE.
	Defines []string
	// Keep, if not empty, is a folder that receives the stages of the compilation, to look into.
	Keep string
}

// Compile compiles MSL source to a library with one function per kernel, in the order of the source. Mistakes in the source
// are reported as an [*Error]; other errors say what went wrong around it.
//
// A nil ctx is like context.Background.
func Compile(ctx context.Context, source string, opts Options) (*metallib.Library, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := checkText(source, opts.Name); err != nil {
		return nil, err
	}
	c, err := newCompiler(opts)
	if err != nil {
		return nil, err
	}
	defer c.close()
	text, r, err := c.frontEnd(ctx, source)
	if err != nil {
		return nil, err
	}
	ir, err := parseIR(text)
	if err != nil {
		return nil, err
	}
	u, err := newUnit(ir, r)
	if err != nil {
		return nil, c.refused(err)
	}
	lib := &metallib.Library{}
	if len(u.kernels) == 0 {
		return lib, nil
	}
	bitcode, err := c.optimise(ctx, u, text)
	if err != nil {
		return nil, err
	}
	lib.Functions, err = c.kernels(ctx, bitcode, u)
	if err != nil {
		return nil, err
	}
	return lib, nil
}

// checkText refuses what is no text that the tools read, before they say so about files of their own.
func checkText(source, name string) error {
	if name == "" {
		name = defaultName
	}
	d := Diagnostic{File: name, Line: 1, Column: 1, Severity: SeverityError}
	zero := strings.IndexByte(source, 0)
	switch {
	case strings.HasPrefix(source, "\xff\xfe"), strings.HasPrefix(source, "\xfe\xff"), strings.HasPrefix(source, "\x00\x00\xfe\xff"):
		d.Message = "the source is UTF-16 or UTF-32; UTF-8 is needed"
	case zero >= 0:
		d.Line += strings.Count(source[:zero], "\n")
		d.Column += zero - 1 - strings.LastIndexByte(source[:zero], '\n')
		d.Message = "a zero byte in the source"
	default:
		return nil
	}
	return &Error{Diagnostics: []Diagnostic{d}}
}

// kernels lowers all kernels, as many at a time as there are processors.
func (c *compiler) kernels(ctx context.Context, bitcode []byte, u *unit) ([]metallib.Function, error) {
	out := make([]metallib.Function, len(u.kernels))
	errs := make([]error, len(u.kernels))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(u.kernels)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(out) {
					return
				}
				if errs[i] = ctx.Err(); errs[i] == nil {
					out[i], errs[i] = c.kernel(bitcode, u, u.kernels[i])
				}
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("msl: %w", err)
	}
	for _, err := range errs {
		if err != nil {
			return nil, c.refused(err)
		}
	}
	return out, nil
}

// kernel makes the library's function of one kernel.
func (c *compiler) kernel(bitcode []byte, u *unit, k *kernelInfo) (metallib.Function, error) {
	m, constants, err := lower(bitcode, u, k)
	if err != nil {
		return metallib.Function{}, err
	}
	f := metallib.Function{Name: k.name, Type: metallib.Kernel, Constants: constants}
	if f.Bitcode, err = air.Write(m); err != nil {
		return metallib.Function{}, &kernelError{k.line, fmt.Errorf("kernel %s: %w", k.name, err)}
	}
	c.keep(k.name+".air", f.Bitcode)
	return f, nil
}

// refused makes an error of the later stages one about the source, at the kernel that it is about.
func (c *compiler) refused(err error) error {
	d := Diagnostic{File: c.opts.Name, Severity: SeverityError, Message: err.Error()}
	var k *kernelError
	if errors.As(err, &k) && c.rewritten != nil {
		if at, ok := c.rewritten.position(k.line, 1); ok {
			ds := []Diagnostic{{Severity: SeverityError, Message: d.Message, at: at}}
			c.sources.resolve(ds)
			d = ds[0]
			d.File = c.displayName(d.File)
		}
	}
	return &Error{Diagnostics: []Diagnostic{d}}
}

// A compiler is one compilation: a folder for clang to work in, and the way back to the source.
type compiler struct {
	opts       Options
	clang, opt string
	// dir holds our headers and the stages; mainFile is the source in it.
	dir, mainFile string
	sources       *sourceMap
	rewritten     *emitted
}

func newCompiler(opts Options) (*compiler, error) {
	if opts.Name == "" {
		opts.Name = defaultName
	}
	c := &compiler{opts: opts}
	var err error
	if c.clang, err = findTool(clangName, clangVariable); err != nil {
		return nil, err
	}
	if c.opt, err = findTool(optName, optVariable); err != nil {
		return nil, err
	}
	if opts.Keep != "" {
		// clang runs in this folder and is given its name.
		if c.dir, err = filepath.Abs(opts.Keep); err == nil {
			err = os.MkdirAll(c.dir, 0o755)
		}
	} else {
		c.dir, err = os.MkdirTemp("", "ingot-msl-")
	}
	if err == nil {
		err = writeHeaders(c.dir)
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("msl: %w", err)
	}
	return c, nil
}

func (c *compiler) close() {
	if c.opts.Keep == "" && c.dir != "" {
		os.RemoveAll(c.dir)
	}
}

// frontEnd compiles MSL to the text of an unoptimised LLVM module.
func (c *compiler) frontEnd(ctx context.Context, source string) (string, *rewriter, error) {
	c.mainFile = filepath.Join(c.dir, "source.metal")
	if err := os.WriteFile(c.mainFile, []byte(source), 0o644); err != nil {
		return "", nil, fmt.Errorf("msl: %w", err)
	}
	pre, err := c.preprocess(ctx, c.mainFile)
	if err != nil {
		return "", nil, err
	}
	c.sources = newSourceMap(pre, func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return string(data)
	})
	tokens, errs := tokenize(pre, c.mainFile)
	r := &rewriter{errors: errs}
	if len(errs) == 0 {
		tokens = r.rewrite(tokens)
	}
	if hasErrors(r.errors) {
		c.sources.resolve(r.errors)
		for i := range r.errors {
			r.errors[i].File = c.displayName(r.errors[i].File)
		}
		return "", nil, &Error{Diagnostics: r.errors}
	}
	c.rewritten = emit(tokens)
	text, err := c.generate(ctx, c.rewritten)
	return text, r, err
}

// keep writes one stage for the curious.
func (c *compiler) keep(name string, data []byte) {
	if c.opts.Keep != "" {
		_ = os.WriteFile(filepath.Join(c.dir, name), data, 0o644)
	}
}
