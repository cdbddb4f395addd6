package nn

import "testing"

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
	for _, c := range []struct{ tokens, hidden, words, affine int }{
		{1, 32, 1, 1}, {1, 512, 1, 1}, {1, 544, 2, 1}, {1, 1056, 3, 2}, {16, 32, 1, 1}, {17, 32, 2, 1}, {33, 32, 3, 2}, {1, 2560, 5, 3}, {100, 1024, 200, 100}, {0, 64, 0, 0},
	} {
		if got := EmbedGroups(c.tokens, c.hidden); got != c.words {
			t.Errorf("EmbedGroups(%d, %d) = %d, want %d", c.tokens, c.hidden, got, c.words)
		}
		if got := EmbedAffineGroups(c.tokens, c.hidden); got != c.affine {
			t.Errorf("EmbedAffineGroups(%d, %d) = %d, want %d", c.tokens, c.hidden, got, c.affine)
		}
	}
}
