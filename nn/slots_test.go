package nn

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// kernelSlots is what nn binds: r a view that is read, w one that is written, u a uint32, f a float32, p a block of parameters;
// t is threadgroup memory.
var kernelSlots = map[string]string{
	"embed_lookup_q4_mlx":           "0r 1r 3r 4w 5u 6u 7u 8u 9f",
	"embed_lookup_q4":               "0r 1r 2r 3r 4w 5u 6u 7u 8u 9f",
	"rms_norm_f32":                  "0r 1r 2w 3u 4u 5f",
	"rms_norm_bf16":                 "0r 1r 2w 3u 4u 5f",
	"rms_norm_residual_add_f32":     "0r 1r 2w 3u 4u 5f 6f",
	"gemv_q4_mlx_simd":              "0r 1r 3r 4w 5u 6u 7u",
	"gemv_q4_mlx_simd_qkv":          "0r 1r 2r 3r 4r 5r 6r 7w 8w 9w 10u 11u 12u 13u 14u 15u",
	"gemv_q4_mlx_simd_gate_up_gelu": "0r 1r 3r 4r 6r 7w 8u 9u 10u 11u",
	"rms_qkv_rope_kv_store":         "0w 1w 2w 3r 4r 5r 6u 7u 8u 9u 10u 11r 13f 14w 15w 16r 17u 18r 19u",
	"flash_attn_rows_h128_r8_g8":    "0r 1r 2r 3w 4u 5u 6r 7u 8u 9u 10f 11r 12r 13u 14u",
	"softcap_argmax_one_pass":       "0r 1w 2r 3u 4w",
	"argmax_f32":                    "0r 1w 2w 3u 4r 5u 6r 7u",
	"softcap_sample":                "0w 1w 2r 3u",
	"softcap_logits":                "0w 1r 2u",
	"mlp_silu":                      "0r 1r 2w 3u",
	"mlp_silu_bf16":                 "0r 1r 2w 3u",
	"mlp_gelu_tanh":                 "0r 1r 2w 3u",
	"mlp_gelu_tanh_bf16":            "0r 1r 2w 3u",
	"scale_f32_inplace":             "0w 1f 2u",
	"add_f32":                       "0r 1r 2w 3u",
	"add_f16":                       "0r 1r 2w 3u",
	"add_bf16":                      "0r 1r 2w 3u",
	"add_bias_f32":                  "0r 1r 2w 3u 4u",
	"cast_f32_f16":                  "0r 1w 2u",
	"cast_f32_bf16":                 "0r 1w 2u",
	"cast_f16_f32":                  "0r 1w 2u",
	"cast_bf16_f32":                 "0r 1w 2u",
	"cast_f16_bf16":                 "0r 1w 2u",
	"cast_bf16_f16":                 "0r 1w 2u",
	"copy_b32":                      "0r 1w 2u",
	"copy_b16":                      "0r 1w 2u",
	"softmax_rows_f32":              "0r 1w 2u 3u",
	"row_sum_f32":                   "0r 1w 2u 3u",
	"row_max_f32":                   "0r 1w 2u 3u",
	"kv_store_timestep":             "0r 1w 2u 3r 4u",
	"kv_store_timestep_f16":         "0r 1w 2u 3r 4u",
	"kv_store_timestep_bf16":        "0r 1w 2u 3r 4u",
	"kv_store_timestep_pair":        "0r 1r 2w 3w 4u 5r 6u",
	"kv_store_timestep_pair_f16":    "0r 1r 2w 3w 4u 5r 6u",
	"kv_store_timestep_pair_bf16":   "0r 1r 2w 3w 4u 5r 6u",
	"kv_ring_densify_b32":           "0r 1w 2u 3u 4r 5r",
	"kv_ring_densify_b16":           "0r 1w 2u 3u 4r 5r",
	"decode_advance":                "0w 1r 2r 3w 4u 5u 6u 7u 8r 9u",
}

// kernelConstants are the function constants that nn sets: index and type.
var kernelConstants = map[string]string{}

// What the kernels of the embedded library declare is what nn binds, slot by slot. That nn binds it is checked by the
// runtime at every dispatch of the other tests, which refuses a slot too many or too few, or one that is only read.
func TestSlotsMatchReflection(t *testing.T) {
	lib, err := metallib.Read(metallib.Default())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range lib.Functions {
		want, ok := kernelSlots[f.Name]
		if !ok {
			continue // a kernel of another package
		}
		seen[f.Name] = true
		m, err := air.Read(f.Bitcode)
		if err != nil {
			t.Fatal(f.Name, err)
		}
		kernels, err := m.Kernels()
		if err != nil || len(kernels) != 1 {
			t.Fatal(f.Name, len(kernels), err)
		}
		var slots []string
		for _, arg := range kernels[0].Args {
			switch {
			case arg.Kind == air.ThreadgroupArg:
				slots = append(slots, fmt.Sprintf("%dt", arg.Index))
				continue
			case arg.Kind != air.BufferArg:
				continue
			}
			kind := "r"
			switch {
			case arg.Space == 2 && arg.TypeName == "uint":
				kind = "u"
			case arg.Space == 2 && arg.TypeName == "float":
				kind = "f"
			case arg.Space == 2 && (strings.HasPrefix(arg.TypeName, "ingot_") || arg.TypeName == "RowExactMvParams"):
				kind = "p"
			case arg.Space != 1:
				kind = fmt.Sprintf("?%d %s", arg.Space, arg.TypeName)
			case arg.Writable:
				kind = "w"
			}
			slots = append(slots, fmt.Sprintf("%d%s", arg.Index, kind))
		}
		if got := strings.Join(slots, " "); got != want {
			t.Errorf("%s: the kernel has %s, nn binds %s", f.Name, got, want)
		}
		var constants []string
		for _, c := range kernels[0].Constants {
			constants = append(constants, fmt.Sprintf("%d %s", c.Index, c.TypeName))
		}
		if got := strings.Join(constants, ", "); got != kernelConstants[f.Name] {
			t.Errorf("%s: the kernel has the constants %s, nn sets %s", f.Name, got, kernelConstants[f.Name])
		}
	}
	for name := range kernelSlots {
		if !seen[name] {
			t.Errorf("the library has no %s", name)
		}
	}
}

// shader is the text of the shaders without comments, by file.
func shaders(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(testenv.Root(t), "shaders")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	comments := regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	text := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text[f.Name()] = comments.ReplaceAllString(string(data), "")
	}
	if len(text) < 10 {
		t.Fatalf("%d shader files", len(text))
	}
	return text
}

// Compilers with fast math fold infinities away, the fast variants of functions lose precision where these kernels need
// it, and math is fused only where fma says so.
func TestShadersAvoidFragileMath(t *testing.T) {
	bad := regexp.MustCompile(`\b(INFINITY|NAN|HUGE_VALF|isnan|isinf|isfinite|pow|powr|atomic_\w+)\b|\bfast::|\bnumeric_limits|\bfmad?\b\s*[^(]`)
	precise := regexp.MustCompile(`(precise::)?\b(exp|exp2|log|sin|cos|tan|tanh|rsqrt|sqrt)\(`)
	for name, text := range shaders(t) {
		for _, m := range bad.FindAllString(text, -1) {
			t.Errorf("%s uses %s", name, m)
		}
		for _, m := range precise.FindAllStringSubmatch(text, -1) {
			if m[1] == "" {
				t.Errorf("%s calls %s) without precise::", name, m[0])
			}
		}
	}
}

// An index into device memory is computed in 64 bits: what multiplies dimensions is widened first.
func TestShadersWidenIndices(t *testing.T) {
	product := regexp.MustCompile(`\b(rows|cols|dim|D|T|Hq|Hkv|H|Tq|capacity|heads|heads_kv|hidden|vocab|kv_stride|n_tokens|row|token|tile)\b\s*\*\s*\b(rows|cols|dim|D|T|Hq|Hkv|H|Tq|capacity|heads|heads_kv|hidden|vocab|kv_stride|n_tokens|row)\b`)
	pointer := regexp.MustCompile(`\b(device|constant|threadgroup|thread)( const)? \w+\*`) // T* row is one, not a product
	for name, text := range shaders(t) {
		for _, m := range product.FindAllString(pointer.ReplaceAllString(text, ""), -1) {
			t.Errorf("%s multiplies %s in 32 bits", name, m)
		}
	}
}

// Host and kernels agree on the numbers that both have.
func TestGeometryMatchesShaders(t *testing.T) {
	text := shaders(t)
	define := func(file, name string, want int) {
		t.Helper()
		m := regexp.MustCompile(`#define ` + name + ` (\d+)u?\s`).FindStringSubmatch(text[file])
		if m == nil || m[1] != fmt.Sprint(want) {
			t.Errorf("%s: %s is %v, the host has %d", file, name, m, want)
		}
	}
	define("q4_mlx.h", "INGOT_Q4_GROUP_ROWS", GEMVRows)
	define("q4_mlx.h", "INGOT_Q4_ROWS", GEMVRows/(GEMVThreads/SIMDWidth))
	define("q4_mlx.h", "INGOT_Q4_BLOCK", 16*SIMDWidth)
	define("argmax.metal", "INGOT_ARGMAX_GROUP", ArgmaxGroup)
	define("argmax.metal", "INGOT_ARGMAX_GROUP", MaxSampleLogits)
	define("qkv_rope.h", "INGOT_ROPE_GROUP_ROWS", RoPERows)
	define("reduce.h", "INGOT_MAX_SIMDGROUPS", MaxRowThreads/SIMDWidth)
	for i, name := range []string{"TOKEN", "POSITION", "KV_LENGTH", "CACHE_OFFSET", "PRODUCED", "STATUS", "PROMPT_LENGTH"} {
		define("decode_advance.metal", "INGOT_STATE_"+name, []int{StateToken, StatePosition, StateKVLength, StateCacheOffset, StateProduced, StateStatus, StatePromptLength}[i])
	}
	for i, name := range []string{"INGOT_RUNNING", "INGOT_END_TOKEN", "INGOT_OUTPUT_FULL", "INGOT_CACHE_FULL", "INGOT_NO_TOKEN"} {
		define("decode_advance.metal", name, int([]DecodeStatus{DecodeRunning, DecodeEndToken, DecodeOutputFull, DecodeCacheFull, DecodeNoToken}[i]))
	}
}

// Every kernel says what a reader needs, and every kernel of the shaders is one that nn launches.
func TestKernelsAreDocumented(t *testing.T) {
	dir := filepath.Join(testenv.Root(t), "shaders")
	files, err := filepath.Glob(filepath.Join(dir, "*.metal"))
	if err != nil {
		t.Fatal(err)
	}
	kernel := regexp.MustCompile(`(?m)((?:^//[^\n]*\n)+)(template <[^\n]*>\n)?kernel void (\w+)\(`)
	var names []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(data), "#include")
		for _, m := range kernel.FindAllStringSubmatch(string(data), -1) {
			if m[2] == "" {
				names = append(names, m[3])
			}
			for _, part := range []string{"Slots:", "Geometry:"} {
				if !strings.Contains(m[1], part) {
					t.Errorf("%s: the comment of %s has no %q", filepath.Base(f), m[3], part)
				}
			}
			if !strings.Contains(strings.ToLower(m[1]+head), "hreadgroup memory") {
				t.Errorf("%s: the comment of %s does not say its threadgroup memory", filepath.Base(f), m[3])
			}
		}
		for _, m := range regexp.MustCompile(`\[\[host_name\("(\w+)"\)\]\] kernel `).FindAllStringSubmatch(string(data), -1) {
			names = append(names, m[1]) // an instance of a template
		}
		if n := strings.Count(string(data), "\nkernel void "); n != len(kernel.FindAllString(string(data), -1)) {
			t.Errorf("%s: %d kernels, some without a comment", filepath.Base(f), n)
		}
	}
	var want []string
	for name := range kernelSlots {
		want = append(want, name)
	}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("kernels of the shaders: %v; nn launches %v", names, want)
	}
}
