package simt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrder(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 4, 5, 17, 64, 100, 1000} {
		for _, kind := range []Order{InOrder, Reversed, Shuffled} {
			for seed := range uint64(3) {
				o := newOrder(kind, seed, n)
				seen := make([]bool, n)
				for i := range n {
					k := o.at(i)
					require.Less(t, k, n)
					require.False(t, seen[k])
					seen[k] = true
				}
			}
		}
	}
	a, b := newOrder(Shuffled, 1, 1<<40), newOrder(Shuffled, 2, 1<<40)
	require.NotEqual(t, a.at(5), b.at(5))
}

func TestSourceName(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "tile": "tile", "_ZZ3sumE4part": "part", "_ZZ16unwritten_sharedE1a": "a", "_ZZ3fooPU9MTLdeviceiE3bar_0": "bar",
		"_ZZ": "_ZZ", "_ZZ3fooE": "_ZZ3fooE", "_ZZ3fooE99x": "_ZZ3fooE99x", "_ZZE99999999999999999999999x": "_ZZE99999999999999999999999x",
	} {
		require.Equal(t, want, sourceName(name))
	}
}
