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

	submitted int           // steps after the prompt's
	host      time.Duration // spent on submitting them
}

// steps is the number of tokens that went through the model.
func (r result) steps() int { return r.prompt - 1 + len(r.tokens) }

// rate is tokens per second.
func (r result) rate() float64 { return float64(r.steps()) / r.total.Seconds() }

func (r result) String() string {
	text := fmt.Sprintf("%d tokens read, %d written, %s, in %.2f s: %.1f tokens/s", r.prompt, len(r.tokens), ending(r.end), r.total.Seconds(), r.rate())
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

// generate continues a prompt. It calls emit for each token as it arrives, the end token included. Nothing is written to
// the device after the beginning; the tokens are read from a list there.
func (m *model) generate(ctx context.Context, prompt []uint32, w way, emit func(id uint32) error) (result, error) {
	r := result{way: w, prompt: len(prompt)}
	if err := m.start(prompt); err != nil {
		return r, err
	}
	begin := time.Now()
	steps := len(prompt) // the last of which produces the first token
	for {
		from := time.Now()
		var last runtime.Submission
		for range steps {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			var err error
			if last, err = m.submit(w); err != nil {
				return r, err
			}
		}
		if len(r.tokens) > 0 {
			r.submitted, r.host = r.submitted+steps, r.host+time.Since(from)
		}
		if err := last.Wait(ctx); err != nil {
			return r, err
		}
		s, err := m.progress()
		if err != nil {
			return r, err
		}
		fresh, err := m.produced(len(r.tokens), s)
		if err != nil {
			return r, err
		}
		for _, id := range fresh {
			r.tokens = append(r.tokens, id)
			if err := emit(id); err != nil {
				return r, err
			}
		}
		r.total, r.end = time.Since(begin), s.Status
		if s.Status != nn.DecodeRunning {
			return r, failure(s.Status)
		}
		steps = burstFor(time.Since(from)/time.Duration(steps), m.output.Len()-len(r.tokens))
	}
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
