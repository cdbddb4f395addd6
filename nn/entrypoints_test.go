package nn

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/nn/quant"
	"github.com/ingot-metal/ingot/runtime"
)

// sources are the package's files, parsed: its own or those of its tests.
func sources(t *testing.T, tests bool) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name.Name == "nn" {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Skip("the package's source is not here")
	}
	return files
}

// entryPoints are the exported functions that encode something into a pass, which is their first parameter.
func entryPoints(t *testing.T) (names []string) {
	t.Helper()
	for _, f := range sources(t, false) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || len(fn.Type.Params.List) == 0 {
				continue
			}
			pointer, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			if s, ok := pointer.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Pass" {
				names = append(names, fn.Name.Name)
			}
		}
	}
	slices.Sort(names)
	if len(names) < 100 {
		t.Fatalf("found %d entry points", len(names))
	}
	return names
}

// testFunctions are the functions of the tests, with the names that stand in each.
func testFunctions(t *testing.T) map[string]map[string]bool {
	t.Helper()
	functions := map[string]map[string]bool{}
	for _, f := range sources(t, true) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			names := functions[fn.Name.Name] // a method may have the name of another one
			if names == nil {
				names = map[string]bool{}
				functions[fn.Name.Name] = names
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					names[id.Name] = true
				}
				return true
			})
		}
	}
	return functions
}

// unsafeUnderChecks are the Unsafe entry points that stand in a test which calls twin, or encodes or records them, on a runtime
// from open; in the function itself, in one that it calls or in one that calls it.
func unsafeUnderChecks(t *testing.T) map[string]bool {
	functions, checked := testFunctions(t), map[string]bool{}
	for name, names := range functions {
		opens, launches := false, false
		look := func(names map[string]bool) {
			opens = opens || names["open"]
			launches = launches || names["twin"] || names["encode"] || names["Record"]
		}
		look(names)
		for other, in := range functions {
			if names[other] || in[name] {
				look(in)
			}
		}
		if !opens || !launches {
			continue
		}
		for used := range names {
			if strings.HasPrefix(used, "Unsafe") {
				checked[used] = true
			}
		}
	}
	return checked
}

// Some test of every entry point says in how many cases it holds its results against an oracle, and how far off the worst
// was: worst.log or logExact with the function's name, in that call or in one that passes it on.
func TestEveryEntryPointReportsItsError(t *testing.T) {
	reported := map[string]bool{}
	for _, f := range sources(t, true) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			if !slices.Contains([]string{"log", "logExact", "familyOf", "testMLP"}, name) {
				return true
			}
			for _, arg := range call.Args {
				if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						reported[s] = true
					}
				}
			}
			return true
		})
	}
	for _, name := range entryPoints(t) {
		if !strings.HasPrefix(name, "Unsafe") && !reported[name] {
			t.Errorf("no test reports the cases and the worst error of %s", name)
		}
	}
}

// Every entry point runs under all checks of the software device: the plain ones here, the Unsafe ones in tests that hold
// them against those ([twin], and some of their own) on a runtime from [open].
func TestEveryEntryPointUnderChecks(t *testing.T) {
	rt := open(t)
	calls := decodeCalls(t, rt)
	products, _ := productCalls(t, rt)
	for _, c := range products {
		name, form, _ := strings.Cut(c.name, " ")
		if _, taken := calls[name]; taken {
			name += " " + form
		}
		calls[name] = c.call
	}
	maps.Copy(calls, matrixCalls(t, rt))
	for name, call := range calls {
		if err := rt.Run(call); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	checked := unsafeUnderChecks(t)
	for _, name := range entryPoints(t) {
		if _, ok := calls[name]; !ok && !checked[name] {
			t.Errorf("%s is launched under checks by no test", name)
		}
	}
}

// matrixCalls are the entry points on simdgroup matrices and what goes with them.
func matrixCalls(t *testing.T, rt *runtime.Runtime) map[string]func(p *runtime.Pass) error {
	c := costCases{t, rt, source(105)}
	const m, n, k, dim = 5, 6, 64, 64
	a, b, out, y := c.f16(m*k), c.f16(n*k), c.f32(m*n), c.f32(m)
	e := Epilogue[float32]{Alpha: 2, Act: ActGELU, Bias: c.f32(n)}
	d, v := GEMMDims{M: m, N: n, K: k, TransB: true}, GEMVDims{Rows: m, Cols: k}
	attn := PreciseDims{Batch: 1, Heads: 1, HeadsKV: 1, HeadDim: dim, Tq: m, Tk: n, Capacity: n, QOffset: n - m, Causal: true, Scale: 0.1}
	q, keys, values, attended := c.f16(m*dim), c.f16(n*dim), PreciseV{F32: c.f32(n * dim)}, c.f32(m*dim)
	codec := quant.TQHB{Dim: dim, Bits: 8}
	cache := TQHBCache{Codes: c.u8(n * dim), Norms: c.f32(n * codec.Norms()), Capacity: n, Codec: codec}
	w, rest := randomRowExact(t, rt, c.r, WeightQ4_0, n, k), Epilogue[float32]{Alpha: 1, Beta: 1, C: c.f32(m * n)}
	rows, cols := PreciseBlocksShape(dim, m, n)
	blocks, mask, x, at := c.u8(rows*cols), c.f16(m*n), c.f32(n*dim), c.u32(0)
	return map[string]func(p *runtime.Pass) error{
		"GEMM":         func(p *runtime.Pass) error { return GEMM(p, out, a, b, d) },
		"GEMMEpilogue": func(p *runtime.Pass) error { return GEMMEpilogue(p, out, a, b, d, e) },
		"GEMV":         func(p *runtime.Pass) error { return GEMV(p, y, a, b, v) },
		"GEMVEpilogue": func(p *runtime.Pass) error { return GEMVEpilogue(p, y, a, b, v, e) },
		"GEMMWeights":  func(p *runtime.Pass) error { return GEMMWeights(p, out, w.bank.(BlockBank), a, m) },
		"GEMMWeightsEpilogue": func(p *runtime.Pass) error {
			return GEMMWeightsEpilogue(p, out, w.bank.(BlockBank), a, m, rest)
		},
		"FlashAttnPrecise": func(p *runtime.Pass) error { return FlashAttnPrecise(p, attended, q, keys, values, attn) },
		"PreciseBlocks":    func(p *runtime.Pass) error { return PreciseBlocks(p, blocks, mask, dim, m, n) },
		"TQHBEncode":       func(p *runtime.Pass) error { return TQHBEncode(p, cache, x, at, n, 1, false) },
		"TQHBDequantize":   func(p *runtime.Pass) error { return TQHBDequantize(p, x, cache.Codes, cache.Norms, codec, n) },
	}
}
