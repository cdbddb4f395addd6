package main

import (
	"context"
	"fmt"
	"io"
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

// result is what a generation was like.
type result struct {
	way    way
	prompt int // tokens
	tokens []uint32
	end    nn.DecodeStatus
	total  time.Duration
	first  time.Duration // until the first token: reading the prompt

	submitted int           // steps after the prompt's
	host      time.Duration // spent on submitting them
}

// steps is the number of tokens that went through the model.
func (r result) steps() int { return r.prompt - 1 + len(r.tokens) }

// rate is tokens per second.
func (r result) rate() float64 { return float64(r.steps()) / r.total.Seconds() }

func (r result) String() string {
	text := fmt.Sprintf("%d tokens read, %d written, %s, in %.2f s: %.1f tokens/s, the first after %.2f s",
		r.prompt, len(r.tokens), ending(r.end), r.total.Seconds(), r.rate(), r.first.Seconds())
	if r.submitted > 0 {
		text += fmt.Sprintf(", %.0f µs of the host per %s token", float64(r.host.Microseconds())/float64(r.submitted), r.way)
	}
	return text
}

// A burst is how many steps are submitted before the host looks at their tokens. Looking waits for all of them, so a burst
// keeps a fast device busy, and is kept short enough for the text to flow.
const (
	burstTime = 30 * time.Millisecond
	maxBurst  = 8
)

// generate continues a prompt: tiles read it, steps go on. It calls emit for each token as it arrives, the end token
// included. Nothing is written to the device after the beginning; the tokens are read from a list there.
func (m *model) generate(ctx context.Context, prompt []uint32, w way, emit func(id uint32) error) (result, error) {
	r := result{way: w, prompt: len(prompt)}
	if err := m.start(prompt, len(prompt)-1); err != nil {
		return r, err
	}
	begin := time.Now()
	last, err := m.read(ctx, w, len(prompt))
	if err != nil {
		return r, err
	}
	if err := m.take(ctx, last, &r, emit); err != nil {
		return r, err
	}
	r.first = time.Since(begin)
	for steps := 1; r.end == nn.DecodeRunning; {
		from := time.Now()
		if last, err = m.burst(ctx, w, steps); err != nil {
			return r, err
		}
		r.submitted, r.host = r.submitted+steps, r.host+time.Since(from)
		if err := m.take(ctx, last, &r, emit); err != nil {
			return r, err
		}
		steps = burstFor(time.Since(from)/time.Duration(steps), m.output.Len()-len(r.tokens))
	}
	r.total = time.Since(begin)
	return r, failure(r.end)
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

// take waits for what was submitted and takes the tokens that it produced.
func (m *model) take(ctx context.Context, last runtime.Submission, r *result, emit func(id uint32) error) error {
	if err := last.Wait(ctx); err != nil {
		return err
	}
	s, err := m.progress()
	if err != nil {
		return err
	}
	fresh, err := m.produced(len(r.tokens), s)
	if err != nil {
		return err
	}
	for _, id := range fresh {
		r.tokens = append(r.tokens, id)
		if err := emit(id); err != nil {
			return err
		}
	}
	r.end = s.Status
	return nil
}

// burstFor is the length of a burst when one step takes that long, and no more than left tokens are to come.
func burstFor(step time.Duration, left int) int {
	return max(1, min(int(burstTime/max(step, 1)), maxBurst, left))
}

// tell writes a text as it comes.
func tell(ctx context.Context, m *model, src *source, prompt string, ids []uint32, w way, out io.Writer) (result, error) {
	if _, err := io.WriteString(out, prompt); err != nil {
		return result{}, err
	}
	text := src.tokenizer.NewDecoder()
	r, err := m.generate(ctx, ids, w, func(id uint32) error {
		_, err := io.WriteString(out, text.Next(id))
		return err
	})
	if _, end := io.WriteString(out, text.Flush()+"\n"); err == nil {
		err = end
	}
	return r, err
}
