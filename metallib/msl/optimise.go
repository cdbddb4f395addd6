package msl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// passes is the pipeline of opt. Left out on purpose: the loop and SLP vectorisers and vector-combine (Metal's back end
// crashes on llvm.vector.reduce, and a GPU gains nothing), the conversion of switches to lookup tables (they would be
// constants in the thread's address space), loop idioms (calls of memset for a few words), and everything that would need
// fast-math flags. What is here does not reorder floating-point arithmetic.
var passes = strings.ReplaceAll(strings.Join([]string{
	"internalize", "globaldce",
	"function(sroa,early-cse,simplifycfg)",
	"cgscc(inline)", "globaldce",
	"function(infer-address-spaces,sroa,early-cse<memssa>,simplifycfg,instcombine)",
	"function(loop-mssa(loop-rotate,licm),simplifycfg,instcombine,loop(indvars,loop-deletion,loop-unroll-full))",
	"function(sroa,infer-address-spaces,early-cse<memssa>,instcombine,gvn,sccp,bdce,instcombine,jump-threading,dse,loop-mssa(licm),adce,simplifycfg,instcombine)",
	"cgscc(function-attrs)", "globaldce",
}, ","), "instcombine", "instcombine<no-verify-fixpoint>")

// optimise runs opt over the text of a module and gives bitcode. Calls are inlined whatever their size, as Metal does: a
// GPU has no call stack worth the name.
func (c *compiler) optimise(ctx context.Context, u *unit, text string) ([]byte, error) {
	input, output, public := filepath.Join(c.dir, "raw.ll"), filepath.Join(c.dir, "optimised.bc"), filepath.Join(c.dir, "public.txt")
	var names strings.Builder
	for _, k := range u.kernels {
		fmt.Fprintln(&names, k.symbol)
	}
	for _, f := range u.initialisers {
		fmt.Fprintln(&names, f)
	}
	if err := os.WriteFile(public, []byte(names.String()), 0o644); err != nil {
		return nil, fmt.Errorf("msl: %w", err)
	}
	if err := os.WriteFile(input, []byte(foldGeneric(text)), 0o644); err != nil {
		return nil, fmt.Errorf("msl: %w", err)
	}
	if _, err := run(ctx, c.dir, c.opt, "-strip-debug", "-assume-default-is-flat-addrspace", "-inline-threshold=1000000",
		"-internalize-public-api-file="+public, "-passes="+passes, "raw.ll", "-o", "optimised.bc"); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(output)
	if err != nil {
		return nil, fmt.Errorf("msl: %w", err)
	}
	return data, nil
}
