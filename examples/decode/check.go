package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// check produces the tokens of each prompt in both ways and compares them.
func check(ctx context.Context, m *model, src *source, prompts []string, ids [][]uint32, out io.Writer) error {
	different := 0
	for i, prompt := range prompts {
		var results [2]result
		for j, w := range ways {
			var err error
			if results[j], err = m.generate(ctx, ids[i], w, func(uint32) error { return nil }); err != nil {
				return fmt.Errorf("%q, %s: %w", prompt, w, err)
			}
		}
		verdict, shown := "same", []way{replayed} // one text is enough when both are the same
		if at := firstDifference(results[0].tokens, results[1].tokens); at >= 0 {
			verdict, shown = fmt.Sprintf("DIFFERENT from token %d on", at), ways[:]
			different++
		}
		fmt.Fprintf(out, "%s: %d tokens, %s\n  direct   %.1f tokens/s\n  replayed %.1f tokens/s\n",
			verdict, len(results[1].tokens), ending(results[1].end), results[0].rate(), results[1].rate())
		for _, w := range shown {
			text := prompt + src.tokenizer.Decode(results[slices.Index(ways[:], w)].tokens)
			fmt.Fprintf(out, "  %-8s %s\n", w, strings.ReplaceAll(strings.TrimSpace(text), "\n", " "))
		}
	}
	if different > 0 {
		return errors.New("direct encoding and replay do not give the same tokens")
	}
	plural := "s"
	if len(prompts) == 1 {
		plural = ""
	}
	fmt.Fprintf(out, "direct encoding and replay give the same tokens for %d prompt%s\n", len(prompts), plural)
	return nil
}

// firstDifference is the index at which two lists part, or -1.
func firstDifference(a, b []uint32) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}
