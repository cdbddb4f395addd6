package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
)

// way is how a step reaches the device.
type way bool

const (
	replayed way = false // the recorded program, one execute
	direct   way = true  // every kernel encoded anew
)

var ways = [2]way{direct, replayed}

func (w way) String() string {
	if w == direct {
		return "direct"
	}
	return "replayed"
}

// submit hands one step to the device and does not wait for it.
func (m *model) submit(w way) (runtime.Submission, error) {
	if w == direct {
		return m.rt.Submit(m.encode)
	}
	return m.program.Replay()
}

// text is what a sequence came to.
type text struct {
	prompt int // tokens
	tokens []uint32
	end    nn.DecodeStatus
}

// result is what a generation was like.
type result struct {
	way   way
	texts []text
	total time.Duration
	first time.Duration // until the first tokens: reading the prompts

	submitted int           // steps after the prompts'
	host      time.Duration // spent on submitting them
}

// running says whether a text goes on.
func (r *result) running() bool {
	for i := range r.texts {
		if r.texts[i].end == nn.DecodeRunning {
			return true
		}
	}
	return false
}

// count is the number of tokens that were read and written.
func (r *result) count() (read, written int) {
	for _, t := range r.texts {
		read, written = read+t.prompt, written+len(t.tokens)
	}
	return read, written
}

// rate is tokens per second, read and written.
func (r *result) rate() float64 {
	read, written := r.count()
	return float64(read+written-len(r.texts)) / r.total.Seconds()
}

func (r result) String() string {
	read, written := r.count()
	end := ending(r.texts[0].end)
	if len(r.texts) > 1 {
		end = fmt.Sprintf("%d texts at once", len(r.texts))
	}
	line := fmt.Sprintf("%s read, %d written, %s, in %.2f s: %.1f tokens/s, the first after %.2f s",
		counted(read, "token"), written, end, r.total.Seconds(), r.rate(), r.first.Seconds())
	if r.submitted > 0 {
		line += fmt.Sprintf(", %.0f µs of the host per %s step", float64(r.host.Microseconds())/float64(r.submitted), r.way)
	}
	return line
}

// A burst is how many steps are submitted before the host looks at their tokens. Looking waits for all of them, so a burst
// keeps a fast device busy, and is kept short enough for the text to flow.
const (
	burstTime = 30 * time.Millisecond
	maxBurst  = 8
)

// generate continues prompts, one for each sequence: tiles read them, steps go on. It calls emit for each token as it arrives,
// end tokens included. How tokens are chosen is the samplers' business, one for each sequence; without them the device takes the
// most likely ones.
func (m *model) generate(ctx context.Context, prompts [][]uint32, w way, samplers []*sampler, emit func(sequence int, id uint32) error) (result, error) {
	r := result{way: w}
	if len(prompts) != m.sequences || (samplers != nil) != m.sampled || m.sampled && len(samplers) != m.sequences {
		return r, fmt.Errorf("%d prompts and %d samplers for %d sequences, sampled %t", len(prompts), len(samplers), m.sequences, m.sampled)
	}
	for _, p := range prompts {
		r.texts = append(r.texts, text{prompt: len(p)})
	}
	begin := time.Now()
	last, err := m.readPrompts(ctx, w, prompts)
	if err == nil {
		err = last.Wait(ctx)
	}
	if err == nil && m.sampled {
		err = m.sampleTokens(ctx, samplers, &r, begin, emit)
	} else if err == nil {
		err = m.takeTokens(ctx, &r, begin, emit)
	}
	r.total = time.Since(begin)
	for i := range r.texts {
		if err == nil {
			err = failure(r.texts[i].end)
		}
	}
	return r, err
}

// takeTokens takes the tokens that the device chooses. Nothing is written to the device; they are read from lists there.
func (m *model) takeTokens(ctx context.Context, r *result, begin time.Time, emit func(sequence int, id uint32) error) error {
	_, err := m.take(r, emit)
	r.first = time.Since(begin)
	for steps := 1; err == nil && r.running(); {
		from := time.Now()
		var last runtime.Submission
		if last, err = m.burst(ctx, r.way, steps); err != nil {
			return err
		}
		r.submitted, r.host = r.submitted+steps, r.host+time.Since(from)
		if err = last.Wait(ctx); err != nil {
			return err
		}
		var left int
		left, err = m.take(r, emit)
		steps = burstFor(time.Since(from)/time.Duration(steps), left)
	}
	return err
}

// burst hands some steps to the device and returns the last one.
func (m *model) burst(ctx context.Context, w way, steps int) (last runtime.Submission, err error) {
	for range steps {
		if err := ctx.Err(); err != nil {
			return last, err
		}
		if last, err = m.submit(w); err != nil {
			return last, err
		}
	}
	return last, nil
}

// take takes the tokens that were produced since. It returns how many the longest text may still get.
func (m *model) take(r *result, emit func(sequence int, id uint32) error) (left int, err error) {
	states, err := m.progress()
	if err != nil {
		return 0, err
	}
	for i := range r.texts {
		t := &r.texts[i]
		fresh, err := m.produced(i, len(t.tokens), states[i])
		if err != nil {
			return 0, err
		}
		for _, id := range fresh {
			t.tokens = append(t.tokens, id)
			if err := emit(i, id); err != nil {
				return 0, err
			}
		}
		if t.end = states[i].Status; t.end == nn.DecodeRunning {
			left = max(left, m.n-len(t.tokens))
		}
	}
	return left, nil
}

// burstFor is the length of a burst when one step takes that long, and no more than left tokens are to come.
func burstFor(step time.Duration, left int) int {
	return max(1, min(int(burstTime/max(step, 1)), maxBurst, left))
}
