package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// tell writes a text as it comes, or several, one below the other, when they are complete.
func tell(ctx context.Context, m *model, src *source, b batch, j *job, out io.Writer) (result, error) {
	if m.sequences > 1 {
		return tellAll(ctx, m, src, b, j, out)
	}
	if _, err := io.WriteString(out, b.prompts[0]); err != nil {
		return result{}, err
	}
	text := src.tokenizer.NewDecoder()
	r, err := m.generate(ctx, b.ids, j.way(), j.samplers(m), func(_ int, id uint32) error {
		_, err := io.WriteString(out, src.next(text, id))
		return err
	})
	if _, end := io.WriteString(out, text.Flush()+"\n"); err == nil {
		err = end
	}
	return r, err
}

// tellAll tells several texts. When they are interrupted, what there is is told.
func tellAll(ctx context.Context, m *model, src *source, b batch, j *job, out io.Writer) (result, error) {
	r, err := m.generate(ctx, b.ids, j.way(), j.samplers(m), func(int, uint32) error { return nil })
	for i, t := range r.texts {
		seed := ""
		if m.sampled {
			seed = fmt.Sprintf(", seed %d", j.seed+uint64(i))
		}
		_, e := fmt.Fprintf(out, "--- %d of %d%s: %s, %s\n%s\n\n", i+1, len(r.texts), seed, counted(len(t.tokens), "token"), ending(t.end),
			strings.TrimRight(b.prompts[i]+src.decode(t.tokens), "\n"))
		if e != nil {
			return r, errors.Join(err, e)
		}
	}
	return r, err
}
