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
func check(ctx context.Context, m *model, src *source, j *job, out io.Writer) error {
	different, count := 0, 0
	for _, b := range j.batches {
		var told strings.Builder
		var results [2]result
		for i, w := range ways {
			var err error
			if results[i], err = m.generate(ctx, b.ids, w, j.samplers(m), func(int, uint32) error { return nil }); err != nil {
				return fmt.Errorf("%q, %s: %w", b.prompts[0], w, err)
			}
		}
		for i := range b.prompts {
			if !compare(src, b.prompts[i], results, i, &told) {
				different++
			}
			count++
		}
		fmt.Fprintf(&told, "  direct   %.1f tokens/s\n  replayed %.1f tokens/s\n", results[0].rate(), results[1].rate())
		if _, err := io.WriteString(out, told.String()); err != nil {
			return err
		}
	}
	if different > 0 {
		return errors.New("direct encoding and replay do not give the same tokens")
	}
	_, err := fmt.Fprintf(out, "direct encoding and replay give the same tokens for %s\n", counted(count, "prompt"))
	return err
}

// compare prints text i of both ways, once if they are the same, and says whether they are.
func compare(src *source, prompt string, results [2]result, i int, out *strings.Builder) bool {
	verdict, shown := "same", []way{replayed}
	texts := [2]text{results[0].texts[i], results[1].texts[i]}
	at := firstDifference(texts[0].tokens, texts[1].tokens)
	if at >= 0 {
		verdict, shown = fmt.Sprintf("DIFFERENT from token %d on", at), ways[:]
	}
	fmt.Fprintf(out, "%s: %s, %s\n", verdict, counted(len(texts[1].tokens), "token"), ending(texts[1].end))
	for _, w := range shown {
		all := prompt + src.decode(texts[slices.Index(ways[:], w)].tokens)
		fmt.Fprintf(out, "  %-8s %s\n", w, strings.ReplaceAll(strings.TrimSpace(all), "\n", " "))
	}
	return at < 0
}

// counted is a number of things, in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
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
