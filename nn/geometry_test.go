package nn

import (
	"testing"

	"github.com/ingot-metal/ingot/runtime"
)

func TestRowThreads(t *testing.T) {
	for _, c := range []struct{ n, want int }{
		{1, 32}, {4, 32}, {127, 32}, {128, 32}, {129, 64}, {256, 64}, {257, 96}, {640, 160}, {1152, 288}, {2560, 640}, {4095, 1024}, {4096, 1024},
		{4097, 1024}, {262144, 1024}, {1<<31 - 1, 1024}, {0, 32},
	} {
		if got := RowThreads(c.n); got != c.want {
			t.Errorf("RowThreads(%d) = %d, want %d", c.n, got, c.want)
		}
	}
	for n := range 10000 {
		if got := RowThreads(n); got%SIMDWidth != 0 || got < SIMDWidth || got > MaxRowThreads {
			t.Fatalf("RowThreads(%d) = %d", n, got)
		}
	}
}

func TestTiles(t *testing.T) {
	for _, c := range []struct{ rows, gemv, rope int }{{1, 1, 1}, {7, 1, 1}, {8, 1, 1}, {9, 2, 2}, {16, 2, 2}, {17, 3, 3}, {262144, 32768, 32768}, {1<<31 - 1, 1 << 28, 1 << 28}} {
		if got := GEMVTiles(c.rows); got != c.gemv {
			t.Errorf("GEMVTiles(%d) = %d, want %d", c.rows, got, c.gemv)
		}
		if got := RoPEGroups(c.rows); got != c.rope {
			t.Errorf("RoPEGroups(%d) = %d, want %d", c.rows, got, c.rope)
		}
	}
	for _, c := range []struct{ tokens, hidden, want int }{{1, 32, 1}, {1, 512, 1}, {1, 544, 2}, {16, 32, 1}, {17, 32, 2}, {1, 2560, 5}, {100, 1024, 200}, {0, 64, 0}} {
		if got := EmbedGroups(c.tokens, c.hidden); got != c.want {
			t.Errorf("EmbedGroups(%d, %d) = %d, want %d", c.tokens, c.hidden, got, c.want)
		}
	}
}

// Every query row has a place in the launch, and no simdgroup has none.
func TestAttnGeometry(t *testing.T) {
	for _, c := range []struct {
		batch, tq, heads int
		groups, threads  runtime.Size
	}{
		{1, 1, 2, runtime.D2(1, 2), runtime.D1(32)}, {1, 4, 1, runtime.D2(1, 1), runtime.D1(32)}, {1, 5, 1, runtime.D2(1, 1), runtime.D1(64)},
		{2, 29, 8, runtime.D2(1, 16), runtime.D1(256)}, {1, 28, 8, runtime.D2(1, 8), runtime.D1(224)}, {1, 32, 1, runtime.D2(1, 1), runtime.D1(256)},
		{1, 33, 1, runtime.D2(2, 1), runtime.D1(256)}, {3, 2048, 16, runtime.D2(64, 48), runtime.D1(256)},
	} {
		groups, threads := AttnGeometry(c.batch, c.tq, c.heads)
		if groups != c.groups || threads != c.threads {
			t.Errorf("%d, %d, %d: %v groups of %v, want %v of %v", c.batch, c.tq, c.heads, groups, threads, c.groups, c.threads)
		}
	}
	for tq := 1; tq < 200; tq++ {
		groups, threads := AttnGeometry(1, tq, 1)
		if groups.X*AttnRows < tq || groups.X == 1 && threads.X/SIMDWidth*4 < tq || groups.X > 1 && threads.X != AttnRows/4*SIMDWidth {
			t.Fatalf("%d rows: %v groups of %v", tq, groups, threads)
		}
	}
}
