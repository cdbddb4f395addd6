package nn

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

// The slots of the kernels of attention, by their settings.
func init() {
	const rows = "0r 1r 2r 3w 4u 5u 6r 7u 8u 9u 10f 11r 12r 13u 14u"
	add := func(names [3]string, slots string) {
		for _, name := range names {
			if name != "" {
				kernelSlots[name] = slots
			}
		}
	}
	for _, s := range rowsSettings {
		add(s.plain, rows)
		add(s.opt, rows+" 15f 16r 17u")
	}
	for _, s := range decodeSettings {
		add(s.plain, "0r 1r 2r 3w 4u 6r 7u 8u 9u 10f 11r 12r 13u 15f")
	}
	for _, s := range reduceSettings {
		add(s.plain, "0r 1w 2u 3r 4u 5u 6u 7r 8u")
	}
	for _, name := range []string{"rms_qkv_rope_kv_store_f16", "rms_qkv_rope_kv_store_bf16"} {
		kernelSlots[name] = kernelSlots["rms_qkv_rope_kv_store"]
	}
	for _, name := range []string{"rms_qkv_rope_kv_store", "rms_qkv_rope_kv_store_f16", "rms_qkv_rope_kv_store_bf16"} {
		kernelSlots[name+"_opt"] = kernelSlots[name] + ropeOptionSlots
	}
	kernelSlots["rms_qkv_rope"] = "0w 1w 2w 3r 4r 5r 6u 7u 8u 9u 10u 11u 13f 18r 19u"
	kernelSlots["rms_qkv_rope_posbuf"] = "0w 1w 2w 3r 4r 5r 6u 7u 8u 9u 10u 11r 13f 18r 19u"
	for _, name := range []string{"rms_qkv_rope", "rms_qkv_rope_posbuf"} {
		kernelSlots[name+"_opt"] = kernelSlots[name] + ropeOptionSlots
	}
}

const ropeOptionSlots = " 20u 21f 22r 23r 24r 25u"

// Names say what the settings are, and every head dimension has what is launched unless another setting is asked for, with
// the small fallback, for every cache and with options.
func TestAttnSettings(t *testing.T) {
	suffix := [3]string{"", "_f16", "_bf16"}
	for _, s := range rowsSettings {
		for i, name := range s.plain {
			if name != "" && name != fmt.Sprintf("flash_attn_rows_h%d_r%d_g%d%s", s.dim, s.lanes, s.n, suffix[i]) {
				t.Errorf("%d, %d, %d: %s", s.dim, s.lanes, s.n, name)
			}
			if opt := s.opt[i]; opt != "" && opt != name+"_opt" {
				t.Errorf("%d, %d, %d: %s", s.dim, s.lanes, s.n, opt)
			}
		}
	}
	for _, s := range decodeSettings {
		for i, name := range s.plain {
			if name != "" && name != fmt.Sprintf("flash_attn_decode_partial_h%d_c%d_r%d%s", s.dim, s.n, s.lanes, suffix[i]) {
				t.Errorf("%d, %d, %d: %s", s.dim, s.lanes, s.n, name)
			}
		}
		if m := findAttn(reduceSettings, s.dim, 0, s.n); m == nil || m.plain[0] != fmt.Sprintf("flash_attn_decode_reduce_h%d_c%d", s.dim, s.n) {
			t.Errorf("%d, %d: no kernel that merges, or %v", s.dim, s.n, m)
		}
	}
	if dims := AttnHeadDims(); !slices.Equal(dims, []int{8, 16, 32, 64, 80, 96, 128, 192, 256, 512}) {
		t.Error(dims)
	}
	for _, d := range AttnHeadDims() {
		for _, groups := range []int{RowsGroupsFor(d), smallGroups} {
			s := findAttn(rowsSettings, d, RowsLanesFor(d), groups)
			if s == nil || slices.Contains(s.plain[:], "") || slices.Contains(s.opt[:], "") {
				t.Errorf("head dimension %d: rows in %d groups: %v", d, groups, s)
			}
		}
		if s := findAttn(decodeSettings, d, DecodeLanesFor(d), DecodeChunkFor(d)); s == nil || slices.Contains(s.plain[:], "") {
			t.Errorf("head dimension %d: decode: %v", d, s)
		}
		if lanes := RowsLanesFor(d); 32%lanes != 0 || d%(4*lanes) != 0 {
			t.Errorf("head dimension %d does not divide into %d lanes", d, lanes)
		}
	}
	for _, d := range []int{128, 256, 512} {
		for _, r := range []int{8, 16, 32} {
			for _, n := range []int{8, 16, 32} {
				if findAttn(rowsSettings, d, r, n) == nil {
					t.Errorf("no rows kernel for %d, %d, %d", d, r, n)
				}
			}
			for _, n := range []int{64, 128, 256} {
				if findAttn(decodeSettings, d, r, n) == nil {
					t.Errorf("no decode kernel for %d, %d, %d", d, r, n)
				}
			}
		}
	}
}

func TestAttnRouting(t *testing.T) {
	for _, c := range []struct{ d, lanes, groups, chunk int }{
		{8, 1, 8, 256}, {16, 2, 8, 256}, {32, 4, 8, 256}, {64, 8, 8, 256}, {128, 8, 8, 256}, {256, 16, 32, 128}, {512, 32, 32, 128}, {0, 0, 0, 0}, {-1, 0, 0, 0}, {127, 0, 0, 0}, {1024, 0, 0, 0},
	} {
		if l, g, n := RowsLanesFor(c.d), RowsGroupsFor(c.d), DecodeChunkFor(c.d); l != c.lanes || g != c.groups || n != c.chunk || DecodeLanesFor(c.d) != l {
			t.Errorf("head dimension %d: %d lanes, %d groups, chunks of %d", c.d, l, g, n)
		}
	}
	for _, c := range []struct{ d, heads, headsKV, want int }{
		{128, 8, 2, 4}, {128, 8, 8, 1}, {128, 8, 1, 8}, {128, 64, 1, 1}, {128, 64, 2, 32}, {512, 8, 8, 8}, {512, 32, 4, 32}, {512, 33, 3, 11}, {512, 40, 1, 1},
		{128, 0, 1, 1}, {128, 4, 0, 1}, {512, -3, -1, 1}, {128, 2, 4, 1},
	} {
		if got := DecodeHeadsFor(c.d, c.heads, c.headsKV); got != c.want {
			t.Errorf("DecodeHeadsFor(%d, %d, %d) = %d, want %d", c.d, c.heads, c.headsKV, got, c.want)
		}
	}
	for heads := 1; heads <= 100; heads++ {
		for kv := 1; kv <= heads; kv++ {
			for _, d := range AttnHeadDims() {
				if n := DecodeHeadsFor(d, heads, heads/kv); heads%(heads/kv) == 0 && (n < 1 || n > 32 || heads%n != 0) {
					t.Fatalf("DecodeHeadsFor(%d, %d, %d) = %d", d, heads, heads/kv, n)
				}
			}
		}
	}
	for _, c := range []struct {
		tq, capacity int
		want         AttnKernel
	}{{1, 1, AttnDecodeKernel}, {1, 1 << 20, AttnDecodeKernel}, {1, 0, AttnRowsKernel}, {0, 5, AttnRowsKernel}, {2, 5, AttnRowsKernel}, {-1, 5, AttnRowsKernel}} {
		if got := AttnKernelFor(c.tq, c.capacity); got != c.want {
			t.Errorf("AttnKernelFor(%d, %d) = %v", c.tq, c.capacity, got)
		}
	}
	if AttnRowsKernel.String() != "FlashAttnRows" || AttnDecodeKernel.String() != "FlashAttnDecode" {
		t.Error(AttnRowsKernel, AttnDecodeKernel)
	}
	for _, c := range []struct{ d, want int }{{8, 32}, {16, 32}, {32, 32}, {64, 64}, {80, 96}, {96, 96}, {128, 128}, {192, 192}, {256, 256}, {512, 256}} {
		if got := DecodeReduceThreads(c.d); got != c.want {
			t.Errorf("DecodeReduceThreads(%d) = %d, want %d", c.d, got, c.want)
		}
	}
}

// Every query row has a place in the launch, and no simdgroup has none.
func TestAttnRowsGeometry(t *testing.T) {
	for _, c := range []struct {
		lanes, simdgroups, batch, tq, heads int
		groups, threads                     runtime.Size
	}{
		{8, 8, 1, 1, 2, runtime.D2(1, 2), runtime.D1(32)}, {8, 8, 1, 4, 1, runtime.D2(1, 1), runtime.D1(32)}, {8, 8, 1, 5, 1, runtime.D2(1, 1), runtime.D1(64)},
		{8, 8, 2, 29, 8, runtime.D2(1, 16), runtime.D1(256)}, {8, 8, 1, 28, 8, runtime.D2(1, 8), runtime.D1(224)}, {8, 8, 1, 32, 1, runtime.D2(1, 1), runtime.D1(256)},
		{8, 8, 1, 33, 1, runtime.D2(2, 1), runtime.D1(256)}, {8, 8, 3, 2048, 16, runtime.D2(64, 48), runtime.D1(256)},
		{32, 32, 1, 33, 1, runtime.D2(2, 1), runtime.D1(1024)}, {32, 32, 1, 3, 1, runtime.D2(1, 1), runtime.D1(96)}, {4, 8, 1, 65, 1, runtime.D2(2, 1), runtime.D1(256)},
		{1, 8, 1, 1, 8, runtime.D2(1, 8), runtime.D1(32)}, {1, 8, 1, 33, 8, runtime.D2(1, 8), runtime.D1(64)}, {1, 8, 2, 257, 8, runtime.D2(2, 16), runtime.D1(256)},
	} {
		groups, threads := AttnRowsGeometry(c.lanes, c.simdgroups, c.batch, c.tq, c.heads)
		if groups != c.groups || threads != c.threads {
			t.Errorf("%+v: %v groups of %v, want %v of %v", c, groups, threads, c.groups, c.threads)
		}
	}
	for _, s := range rowsSettings {
		rows := SIMDWidth / s.lanes * s.n
		for tq := 1; tq < 200; tq++ {
			groups, threads := AttnRowsGeometry(s.lanes, s.n, 1, tq, 1)
			if groups.X*rows < tq || groups.X == 1 && threads.X/s.lanes < tq || groups.X > 1 && threads.X != s.n*SIMDWidth {
				t.Fatalf("%v: %d rows: %v groups of %v", s, tq, groups, threads)
			}
		}
	}
}

// Every chunk and head has a place, and the scratch holds what they write.
func TestAttnDecodeGeometry(t *testing.T) {
	for _, c := range []struct {
		chunk, block, batch, heads, capacity int
		groups, threads                      runtime.Size
		chunks                               int
	}{
		{256, 4, 1, 8, 1, runtime.D2(1, 2), runtime.D1(128), 1}, {256, 4, 1, 8, 256, runtime.D2(1, 2), runtime.D1(128), 1}, {256, 4, 3, 8, 257, runtime.D2(2, 6), runtime.D1(128), 2},
		{64, 1, 1, 1, 4096, runtime.D2(64, 1), runtime.D1(32), 64}, {128, 2, 1, 3, 129, runtime.D2(2, 2), runtime.D1(64), 2},
	} {
		groups, threads := AttnDecodeGeometry(c.chunk, c.block, c.batch, c.heads, c.capacity)
		if groups != c.groups || threads != c.threads || AttnDecodeChunks(c.capacity, c.chunk) != c.chunks {
			t.Errorf("%+v: %v groups of %v, %d chunks", c, groups, threads, AttnDecodeChunks(c.capacity, c.chunk))
		}
	}
	// What no launch has gives no launch, and no panic.
	for _, bad := range []int{0, -1} {
		AttnRowsGeometry(bad, bad, bad, bad, bad)
		AttnDecodeGeometry(bad, bad, bad, bad, bad)
	}
	d := AttnDims{Batch: 2, Tq: 1, Heads: 6, HeadsKV: 2, HeadDim: 80, Capacity: 513, Scale: 1}
	if n := AttnDecodeScratch(d); n != 2*6*3*82 {
		t.Error(n)
	}
	d.HeadDim, d.Chunk = 128, 64
	if n := AttnDecodeScratch(d); n != 2*6*9*130 {
		t.Error(n)
	}
	for name, change := range map[string]func(d *AttnDims){
		"two rows": func(d *AttnDims) { d.Tq = 2 }, "head dimension": func(d *AttnDims) { d.HeadDim = 72 }, "heads": func(d *AttnDims) { d.Heads = 0 },
		"capacity": func(d *AttnDims) { d.Capacity = 0 }, "huge": func(d *AttnDims) { d.Batch, d.Heads, d.Capacity = 1<<15, 1<<16, 1<<30 },
		"chunk": func(d *AttnDims) { d.Chunk = -64 }, "another chunk": func(d *AttnDims) { d.Chunk = 65 }, "no batch": func(d *AttnDims) { d.Batch = 0 },
	} {
		e := d
		if change(&e); AttnDecodeScratch(e) != 0 {
			t.Errorf("%s: %d", name, AttnDecodeScratch(e))
		}
	}
}
