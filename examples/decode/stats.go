package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/objc"
)

// cost is what one step costs the host.
type cost struct {
	time     time.Duration // until the step is committed, median
	messages int           // to Metal's objects, until then
}

const (
	warmSteps     = 2
	measuredSteps = 15
)

// hostCost measures one way, over that many steps after prompts. Steps after the end of a text do the same work again.
func (m *model) hostCost(ctx context.Context, w way, prompts [][]uint32, steps int) (cost, error) {
	if _, err := m.readPrompts(ctx, w, prompts); err != nil {
		return cost{}, err
	}
	var times []time.Duration
	var messages atomic.Int64
	defer objc.SetTrace(nil)
	for i := range warmSteps + steps + 1 {
		counting := i == warmSteps+steps
		if counting {
			objc.SetTrace(func(objc.ID, objc.SEL) { messages.Add(1) })
		}
		begin := time.Now()
		s, err := m.submit(w)
		spent := time.Since(begin)
		objc.SetTrace(nil) // waiting sends messages too, more of them the longer it lasts
		if err == nil {
			err = s.Wait(ctx)
		}
		if err != nil {
			return cost{}, err
		}
		if i >= warmSteps && !counting {
			times = append(times, spent)
		}
	}
	slices.Sort(times)
	return cost{times[len(times)/2], int(messages.Load())}, nil
}

// measure prints what a step costs the host in both ways.
func measure(ctx context.Context, m *model, b batch, out io.Writer) error {
	fmt.Fprintf(out, "\nhost work per step, %d kernels:\n", m.kernels)
	for _, w := range ways {
		c, err := m.hostCost(ctx, w, b.ids, measuredSteps)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %-8s  %8.1f µs  %5d Metal messages\n", w, float64(c.time)/float64(time.Microsecond), c.messages)
	}
	return nil
}
