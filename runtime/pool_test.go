package runtime

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizeClass(t *testing.T) {
	for _, c := range [][2]int{{0, 256}, {1, 256}, {256, 256}, {257, 320}, {512, 512}, {513, 640}, {1 << 20, 1 << 20},
		{1<<20 + 1, 1<<20 + 128<<10}, {math.MaxInt, math.MaxInt}} {
		require.Equal(t, c[1], sizeClass(c[0]), "%d bytes", c[0])
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		n := 1 + int(rng.Uint64()>>(20+rng.IntN(43)))
		c := sizeClass(n)
		require.GreaterOrEqual(t, c, n)
		require.Equal(t, c, sizeClass(c), "a class is its own class")
		require.GreaterOrEqual(t, sizeClass(n+1), c)
		if n > 256 {
			require.LessOrEqual(t, float64(c), 1.25*float64(n)+1)
		}
		if c < 1<<60 {
			require.Zero(t, c%32)
		}
	}
}

func TestPool(t *testing.T) {
	var dropped []int
	drop := func(b int) { dropped = append(dropped, b) }
	p := bufferPool[int]{limit: 1000}
	_, ok := p.take(poolKey{256, Shared})
	require.False(t, ok)
	p.put(poolKey{256, Shared}, 1, drop)
	p.put(poolKey{256, Shared}, 2, drop)
	p.put(poolKey{320, Shared}, 3, drop)
	require.Empty(t, dropped)
	require.Equal(t, 832, p.bytes)
	p.put(poolKey{256, Shared}, 4, drop) // 1088: the largest goes
	require.Equal(t, []int{3}, dropped)
	p.put(poolKey{2000, Shared}, 5, drop) // never fits
	require.Equal(t, []int{3, 5}, dropped)
	b, ok := p.take(poolKey{256, Shared})
	require.True(t, ok)
	require.Equal(t, 4, b, "the most recent one first: it may still be in a cache")
	p.trim(0, drop)
	require.Equal(t, 0, p.bytes)
	require.Len(t, dropped, 4)
}
