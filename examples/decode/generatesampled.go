package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ingot-metal/ingot/nn"
)

// sampleTokens lets the host choose: it reads the logits, writes the tokens, and the next step begins by taking them. All else is
// as if the device had chosen, the recorded step included.
func (m *model) sampleTokens(ctx context.Context, samplers []*sampler, r *result, begin time.Time, emit func(sequence int, id uint32) error) error {
	logits, choices := make([]float32, m.logits.Len()), make([]uint32, m.sequences)
	for r.running() {
		if err := m.logits.Read(logits); err != nil {
			return err
		}
		for i := range r.texts {
			t := &r.texts[i]
			if t.end != nn.DecodeRunning {
				continue
			}
			id, err := samplers[i].choose(logits[i*m.config.Vocab : (i+1)*m.config.Vocab])
			if err != nil {
				return err
			}
			choices[i] = id
			t.tokens = append(t.tokens, id)
			if err := emit(i, id); err != nil {
				return err
			}
		}
		if r.first == 0 {
			r.first = time.Since(begin)
		}
		if err := m.takeChoices(ctx, choices, r); err != nil {
			return err
		}
	}
	return nil
}

// takeChoices takes a step with the tokens that were chosen.
func (m *model) takeChoices(ctx context.Context, choices []uint32, r *result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	from := time.Now()
	if err := m.choice.Write(choices); err != nil {
		return err
	}
	s, err := m.submit(r.way)
	if err != nil {
		return err
	}
	r.submitted, r.host = r.submitted+1, r.host+time.Since(from)
	if err := s.Wait(ctx); err != nil {
		return err
	}
	states, err := m.progress()
	if err != nil {
		return err
	}
	for i := range r.texts {
		if int(states[i].Produced) != len(r.texts[i].tokens) {
			return fmt.Errorf("the device took %d tokens, of %d", states[i].Produced, len(r.texts[i].tokens))
		}
		r.texts[i].end = states[i].Status
	}
	return nil
}
