package main

import (
	"context"
	"errors"
	"slices"

	"github.com/ingot-metal/ingot/runtime"
)

// readPrompts hands a prompt for each sequence to the device: one after the other, by the tiles of the first sequence. What a
// prompt leaves there is copied to where its sequence goes on, and that of the first sequence, the last to be read, stays. A
// prompt that several sequences have is read once. So each prompt is read exactly as it is alone.
func (m *model) readPrompts(ctx context.Context, w way, prompts [][]uint32) (last runtime.Submission, err error) {
	for i := len(prompts) - 1; i >= 0; i-- {
		if slices.ContainsFunc(prompts[:i], func(p []uint32) bool { return slices.Equal(p, prompts[i]) }) {
			continue // read further on, for both
		}
		if err := m.start(0, prompts[i], len(prompts[i])-1); err != nil {
			return last, err
		}
		if last, err = m.read(ctx, w, len(prompts[i])); err != nil {
			return last, err
		}
		for j := max(i, 1); j < len(prompts); j++ {
			if !slices.Equal(prompts[j], prompts[i]) {
				continue
			}
			if last, err = m.copyFirst(j, len(prompts[j])); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

// copyFirst copies the state of the first sequence to another one, when a prompt of n tokens was read.
func (m *model) copyFirst(to, n int) (runtime.Submission, error) {
	return m.rt.Submit(func(p *runtime.Pass) error {
		used := n * m.kvStride()
		for i := range m.weights.layers {
			l := &m.weights.layers[i]
			keys, values := m.caches(l, 0)
			toKeys, toValues := m.caches(l, to)
			err := errors.Join(p.Copy(toKeys.Slice(0, used).View(), keys.Slice(0, used).View()),
				p.Copy(toValues.Slice(0, used).View(), values.Slice(0, used).View()))
			if err != nil {
				return err
			}
		}
		return errors.Join(
			p.Copy(m.stateOf(to).View(), m.stateOf(0).View()),
			p.Copy(part(m.prompt, to, m.longest).View(), part(m.prompt, 0, m.longest).View()),
			p.Copy(part(m.output, to, m.n).Slice(0, 1).View(), m.output.Slice(0, 1).View()),
			p.Copy(part(m.logits, to, m.config.Vocab).View(), part(m.logits, 0, m.config.Vocab).View()),
		)
	})
}
